// The standard normal distribution.
//
// Source: Wichura, Applied Statistics 37 (1988), algorithm AS 241 in its 7-figure form.
#ifndef STEPCAST_MODEL_STATISTICS_NORMAL_H_
#define STEPCAST_MODEL_STATISTICS_NORMAL_H_

namespace stepcast {

// x with Phi(x) = p, 0 < p < 1, to seven figures. Note that it is odd around p = 1/2.
double NormalQuantile(double p);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STATISTICS_NORMAL_H_
