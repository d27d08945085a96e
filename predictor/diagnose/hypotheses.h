// What the model says of a measurement where one thing is wrong: the forecasts that a diagnosis
// compares (predictor/diagnose/diagnose.h).
#ifndef STEPCAST_PREDICTOR_DIAGNOSE_HYPOTHESES_H_
#define STEPCAST_PREDICTOR_DIAGNOSE_HYPOTHESES_H_

#include <Eigen/Core>
#include <optional>
#include <vector>

#include "model/step/answer.h"
#include "model/step/belief.h"
#include "predictor/diagnose/diagnose.h"

namespace stepcast::internal {

// One way in which one thing can be wrong, with the range of how bad it is; the two are equal where
// it has no degrees.
// The largest share of lost packets that is looked at: beyond it nothing trains.
inline constexpr double kMostLoss = 0.1;

struct Hypothesis {
  Cause cause = Cause::kNothing;
  int form = 0;
  double low = 1;
  double high = 1;
  double log_sd = 0;  // of ln x, which is normal around 0; 0: uniform
  double loss = 0;    // share of packets that the network loses besides, as measured

  bool has_degrees() const { return high > low; }
  // ln of the density of ln x, but for a constant.
  double LogDensity(double log_x) const {
    return log_sd > 0 ? -0.5 * (log_x / log_sd) * (log_x / log_sd) : 0;
  }
  // The same network and job without the cause.
  Hypothesis Cured() const {
    Hypothesis cured;
    cured.loss = loss;
    return cured;
  }
};

// Whose samples arrive too slowly, and what is wrong about servers.
enum InputForm { kOfEachHost, kOfAll };
enum ServerForm { kOnWorkers, kOnOne, kDealtInTurn };

// All that can apply to a plan, nothing first. Flows are told from links whose rate is known.
std::vector<Hypothesis> HypothesesOf(const Predictor& predictor, const Plan& plan,
                                     bool knows_links);

struct Forecast {
  double log_value = 0;      // of the measurement's value [SI]
  double log_sd = 0;         // of ln(measured / forecast), where theta is right
  Eigen::VectorXd gradient;  // of log_value by theta
  StepTime<double> parts;    // of a step; the rest of it waits for input
};

// A pace of the plan that no run has told (model/step/slow_ends.h): its place in theta, and how far
// from the mean its slow end is, in standard deviations and with their sign.
struct SlowWay {
  Eigen::Index at = 0;
  double sds = 0;
};

// The model of one job. theta is the belief's ln(value), and behind it the ln of the share of
// stated line rates that is reached.
class Forecaster {
 public:
  Forecaster(const Predictor& predictor, const Plan& plan, const DiagnosisOptions& options);

  const Eigen::VectorXd& mean() const { return mean_; }
  const Eigen::MatrixXd& covariance() const { return covariance_; }
  // Its symmetric root.
  const Eigen::MatrixXd& spread() const { return spread_; }
  const std::vector<SlowWay>& slow_ways() const { return slow_ways_; }
  const Plan& plan() const { return plan_; }

  // The step from which the degrees of `input` count, by default that of the belief; set before any
  // of them is asked.
  void SetBase(Duration<> step) { base_ = step; }

  // What is believed of compute, where nothing but this step tells.
  void CentreCompute(const Measurement& step);

  Forecast Of(const Measurement& measurement, const Hypothesis& hypothesis, double x,
              const Eigen::VectorXd& theta) const;

  // The line rate of the links between nodes, as stated or believed, and without what is wrong.
  DataRate<> StatedRate() const;
  // Whether somebody stated it, or learnt it.
  bool knows_rate() const { return link_.bandwidth.has_value() || knows_rate_; }
  // What the devices of a host exchange at, as stated or believed, and without what is wrong.
  DataRate<> DeviceRate() const;
  // Whether somebody stated it, or learnt it, or a data sheet does.
  bool knows_device_rate() const { return knows_device_rate_; }
  // Whether it is a rate that links which are stated cannot carry.
  bool Overfills(const Measurement& measurement) const;
  // ln of how bad it is, in the unit of the size, and its gradient by theta.
  Forecast SizeOf(const Hypothesis& hypothesis, double x, const Eigen::VectorXd& theta) const;

 private:
  PlanParameters ParametersAt(const Eigen::VectorXd& theta) const;
  Forecast StepOf(const Measurement& measurement, const Hypothesis& hypothesis, double x,
                  const Eigen::VectorXd& theta) const;
  double LogRate(int connections, const Hypothesis& hypothesis, double x,
                 const Eigen::VectorXd& theta) const;
  Forecast RateOf(const Measurement& measurement, const Hypothesis& hypothesis, double x,
                  const Eigen::VectorXd& theta) const;
  int LatencyPosition() const;
  void SetSpread();
  void SetSlowWays();

  const Predictor& predictor_;
  Plan plan_;
  std::optional<double> step_log_sd_;
  Belief::AtHosts hosts_;
  LinkFacts link_;  // between the nodes, as stated
  bool knows_rate_ = false;
  bool knows_device_rate_ = false;
  Eigen::VectorXd mean_;
  Eigen::MatrixXd covariance_;
  Eigen::MatrixXd spread_;
  std::vector<SlowWay> slow_ways_;
  Duration<> base_;
};

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_DIAGNOSE_HYPOTHESES_H_
