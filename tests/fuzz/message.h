// Messages of protobuf as inputs: their bytes or, easier to read and to mutate, their text.
#ifndef STEPCAST_TESTS_FUZZ_MESSAGE_H_
#define STEPCAST_TESTS_FUZZ_MESSAGE_H_

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <string>

namespace stepcast::fuzz {

// The bytes of the message whose text the input is; the input itself where it is none.
template <class Message>
std::string MessageBytes(const std::string& input, Message* message) {
  struct Silent : google::protobuf::io::ErrorCollector {
    void AddError(int /*line*/, int /*column*/, const std::string& /*message*/) override {}
  } silent;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  constexpr int kDeepest = 100;  // as of bytes
  parser.SetRecursionLimit(kDeepest);
  if (parser.ParseFromString(input, message)) return message->SerializePartialAsString();
  message->ParsePartialFromString(input);
  return input;
}

}  // namespace stepcast::fuzz

#endif  // STEPCAST_TESTS_FUZZ_MESSAGE_H_
