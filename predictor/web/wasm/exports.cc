// What JavaScript calls: texts in, texts out.
#include <memory>
#include <string>
#include <string_view>

#include "data/record/input_error.h"
#include "predictor/web/door.h"
#include "predictor/web/records.h"

namespace {

std::unique_ptr<const stepcast::web::Door>& TheDoor() {
  static std::unique_ptr<const stepcast::web::Door> door;
  return door;
}

stepcast::serve::Reply& TheReply() {
  static stepcast::serve::Reply reply;
  return reply;
}

}  // namespace

extern "C" {

// Takes the records in; 200, or another status with a sentence in the reply.
int stepcast_web_open(const char* bytes, int size) {
  try {
    TheDoor() = std::make_unique<const stepcast::web::Door>(
        stepcast::web::ReadRecords({bytes, static_cast<std::size_t>(size)}));
    TheReply() = {};
  } catch (const stepcast::InputError& e) {
    TheReply() = stepcast::serve::Api::Problem(400, e.what());
  }
  return TheReply().status;
}

// The status of the answer, which the two functions below give.
int stepcast_web_ask(const char* target, const char* body, int size) {
  TheReply() = TheDoor()->Ask(target, {body, static_cast<std::size_t>(size)});
  return TheReply().status;
}
const char* stepcast_web_reply() { return TheReply().body.data(); }
int stepcast_web_reply_size() { return static_cast<int>(TheReply().body.size()); }

}  // extern "C"
