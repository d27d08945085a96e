// Where a server listens, as people write it.
#include "predictor/serve/address.h"

#include <gtest/gtest.h>

#include "tests/support/input_error.h"

namespace stepcast::serve {
namespace {

Address Parse(const std::string& text) { return ParseAddress(text, {"", 0, "--listen"}); }

TEST(Address, IsReadAsItIsWritten) {
  for (const char* text : {"127.0.0.1:8080", "0.0.0.0:0", "[::1]:65535", "[::]:80"}) {
    EXPECT_EQ(Parse(text).text(), text);
  }
}

TEST(Address, KnowsWhoCanReachIt) {
  for (const char* text : {"127.0.0.1:1", "127.1.2.3:1", "[::1]:1"}) {
    EXPECT_TRUE(Parse(text).loopback()) << text;
  }
  for (const char* text : {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "128.127.0.0:1"}) {
    EXPECT_FALSE(Parse(text).loopback()) << text;
  }
}

TEST(Address, NothingElseIsOne) {
  for (const char* text : {"", ":", "8080", ":8080", "localhost:8080", "127.0.0.1",
                           "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:x", "::1:80",
                           "[::1]", "[::1]80", "[127.0.0.1]:80", "127.0.0.1:80 x", "127.0.1:80"}) {
    EXPECT_TRUE(Says(ErrorOf([&] { Parse(text); }), "--listen: ")) << text;
  }
}

}  // namespace
}  // namespace stepcast::serve
