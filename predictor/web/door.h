// What the page asks: the HTTP interface of the service without its sockets, and a few questions
// of its own.
#ifndef STEPCAST_PREDICTOR_WEB_DOOR_H_
#define STEPCAST_PREDICTOR_WEB_DOOR_H_

#include <string>
#include <string_view>

#include "predictor/serve/api.h"

namespace stepcast::web {

class Door {
 public:
  // Throws InputError as Snapshot does.
  explicit Door(serve::Inventory inventory);

  // Answers what Api answers, with "GET" where `body` is empty; and
  //
  //   fields     the list of what a plan says
  //   training   the same of how its network is trained
  //   devices    name and title of those with a data sheet
  //   explain    a plan as /v1/predict takes it: every term, and the time line of its step
  //   recommend  the same: the frontier of batch and accumulation
  //   plot       curves over workers as SVG, as `stepcast sweep --plot` draws them
  //
  // Never throws.
  serve::Reply Ask(std::string_view target, std::string_view body) const;

 private:
  serve::Reply Explain(std::string_view body) const;
  serve::Reply Recommend(std::string_view body) const;

  mutable serve::Service service_;
  mutable serve::Metrics metrics_;
  serve::Api api_;
};

}  // namespace stepcast::web

#endif  // STEPCAST_PREDICTOR_WEB_DOOR_H_
