// Words that hosts show each other, so that strangers are told from them.
#ifndef STEPCAST_MICROBENCH_NETWORK_TOKEN_H_
#define STEPCAST_MICROBENCH_NETWORK_TOKEN_H_

#include <string>
#include <string_view>

namespace stepcast::network {

// A word of 32 hexadecimal digits that nobody can guess. Throws std::runtime_error where the system
// gives no random numbers.
std::string RandomWord();

// Takes as long for any wrong token.
bool SameToken(std::string_view a, std::string_view b);

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_TOKEN_H_
