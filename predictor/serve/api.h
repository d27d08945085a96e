// The HTTP interface without its sockets: a request as read, an answer to be written.
//
//   GET  /  (the page, where it was built)
//   GET  /v1/clusters  /v1/workloads  /v1/jobs  /healthz  /readyz  /metrics  /openapi.yaml
//   POST /v1/predict  /v1/predict_batch  /v1/recommend  /v1/observe  /v1/end_job  /v1/reload
//
// Answers are JSON; errors are application/problem+json with one sentence that names key, value and
// what is allowed (docs/reference/service.md).
#ifndef STEPCAST_PREDICTOR_SERVE_API_H_
#define STEPCAST_PREDICTOR_SERVE_API_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "predictor/serve/metrics.h"
#include "predictor/serve/service.h"

namespace stepcast::serve {

struct Request {
  std::string_view method;
  std::string_view target;  // path and query
  std::string_view content_type;
  std::string_view body;
};

struct Reply {
  int status = 200;
  const char* content_type = "application/json";
  std::string body;
  const char* allow = nullptr;  // methods, with status 405
  bool retry_later = false;
  int snapshot = 0;  // that answered; 0 for none
};

class Api;

struct Endpoint {
  const char* path;
  const char* method;  // GET is HEAD as well
  bool json;           // whether a body of JSON is required
  bool columns;        // or one of columns (predictor/serve/binary.h)
  bool slow;           // may take longer than others should wait for
  Reply (Api::*answer)(const Request&) const;
};

class Api {
 public:
  // The page that answers what-if questions about what is served.
  using MakePage = std::function<std::string(const Inventory&)>;

  // Both outlive the api. Without `make_page` there is no page at /.
  Api(Service* service, Metrics* metrics, MakePage make_page = nullptr)
      : service_(service), metrics_(metrics), make_page_(std::move(make_page)) {}

  // The endpoint of a request's method, target and content type; nullptr, with the refusal in
  // `refusal`, where there is none.
  static const Endpoint* Find(const Request& request, Reply* refusal);
  // The answer; never throws.
  Reply Answer(const Endpoint& endpoint, const Request& request) const;
  // Finds the endpoint and answers, or refuses.
  Reply Answer(const Request& request) const;

  // From now on /readyz says no.
  void SetStopping() { stopping_ = true; }

  // One sentence as application/problem+json.
  static Reply Problem(int status, const std::string& sentence);
  // One that may be over when the request is made again.
  static Reply ProblemForNow(int status, const std::string& sentence);
  // What a request has wrong, with the key that `whole` names.
  static Reply Problem(const InputError& whole);

 private:
  friend struct Endpoints;

  Reply Predict(const Request& request) const;
  Reply PredictBatch(const Request& request) const;
  Reply Recommend(const Request& request) const;
  Reply Observe(const Request& request) const;
  Reply EndJob(const Request& request) const;
  Reply JobList(const Request& request) const;
  Reply Reload(const Request& request) const;
  Reply Clusters(const Request& request) const;
  Reply Workloads(const Request& request) const;
  Reply Health(const Request& request) const;
  Reply Ready(const Request& request) const;
  Reply ShowMetrics(const Request& request) const;
  Reply ShowOpenApi(const Request& request) const;
  Reply ShowPage(const Request& request) const;

  Service* service_;
  Metrics* metrics_;
  MakePage make_page_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex reloading_;
};

// The phrase of an HTTP status: "Not Found".
const char* StatusText(int status);

// predictor/serve/openapi.yaml.
const char* OpenApiText();

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_API_H_
