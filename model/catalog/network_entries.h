// Catalogue entries of model/network.
#ifndef STEPCAST_MODEL_CATALOG_NETWORK_ENTRIES_H_
#define STEPCAST_MODEL_CATALOG_NETWORK_ENTRIES_H_

#include <vector>

#include "model/catalog/catalog.h"
#include "model/network/congestion.h"
#include "model/network/hop.h"
#include "model/network/incast.h"
#include "model/network/oversubscription.h"
#include "model/network/sharing.h"
#include "model/network/slow_start.h"
#include "model/network/transport.h"

namespace stepcast::internal {

inline constexpr Files kTransportFiles{"model/network/transport.h", "docs/explanation/transport.md",
                                       "tests/model/transport_test.cc"};
inline constexpr Files kCongestionFiles{
    "model/network/congestion.h", "docs/explanation/transport.md", "tests/model/transport_test.cc"};
inline constexpr Files kSlowStartFiles{
    "model/network/slow_start.h", "docs/explanation/transport.md", "tests/model/transport_test.cc"};
inline constexpr Files kIncastFiles{"model/network/incast.h", "docs/explanation/transport.md",
                                    "tests/model/transport_test.cc"};
inline constexpr Files kHopFiles{"model/network/hop.h", "docs/explanation/step-model.md",
                                 "tests/model/hop_test.cc"};

inline constexpr Files kSharingFiles{"model/network/sharing.h", "docs/explanation/step-model.md",
                                     "tests/model/sharing_test.cc"};

inline constexpr Files kCoreFiles{"model/network/oversubscription.h",
                                  "docs/explanation/step-model.md",
                                  "tests/model/oversubscription_test.cc"};

inline constexpr double kEntryFlows = 2;
inline constexpr double kEntrySwitch = 16;  // nodes
inline constexpr double kEntryBarrierFlows = 8;
inline constexpr double kEntrySenders = 32;

// bandwidth, rtt, loss; everything else as the defaults have it.
template <class T>
Path<T> EntryPath(const T& bandwidth, const T& rtt, const T& loss) {
  Path<T> path;
  path.bandwidth = DataRate<T>::FromSi(bandwidth);
  path.rtt = Duration<T>::FromSi(rtt);
  path.loss = loss;
  return path;
}

template <class T>
void AddNetworkEntries(std::vector<Model<T>>* models) {
  constexpr Trend kUp = Trend::kNeverFalls;
  constexpr Trend kDown = Trend::kNeverRises;
  const auto line = [](Trend trend) {
    return ModelInput{"B", "B/s", 1e6, 1e11, trend, "usable bandwidth of the link"};
  };
  const auto rtt = [](Trend trend) {
    return ModelInput{"R", "s", 1e-5, 1, trend, "round-trip time"};
  };
  const auto loss = [](Trend trend) {
    return ModelInput{"p", "", 1e-6, 0.2, trend, "probability that a packet is lost"};
  };
  const ModelInput oversubscription{
      "o", "", 1, 100, kUp, "what the links of a switch's nodes carry, over what its uplinks do"};
  const auto window = [](Trend trend) {
    return ModelInput{"W", "B", 1448, 1e8, trend, "bytes that one flow may have in flight"};
  };
  const ModelInput segment{"M", "B", 500, 9000, kUp, "payload of a segment"};
  const auto timeout = [](Trend trend) {
    return ModelInput{"T_0", "s", 1e-3, 5, trend, "cost of a retransmission timeout"};
  };
  const auto message = [](Trend trend) {
    return ModelInput{"m", "B", 1e4, 1e9, trend, "bytes of the message"};
  };

  models->push_back(
      {.id = "network/window",
       .sentence = "Two flows that may not have more than a window in flight, on one link.",
       .formula = "(B^-4 + (2 W / R)^-4)^(-1/4)",
       .source = "tcp(7) of Linux: buffers; RFC 9293",
       .validity = "no loss; transfers of many round trips",
       .output = "B/s",
       .inputs = {line(kUp), rtt(kDown), window(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             Path<T> path = EntryPath(x[0], x[1], T(0.0));
             path.window = DataSize<T>::FromSi(x[2]);
             return Deliver(path, kEntryFlows).si();
           },
       .known = {{"a slow line: the line", {1e6, 1e-5, 1e8}, 1e6},
                 {"a small window and a long way: the window", {1e11, 1, 1e4}, 2e4},
                 {"as much of either", {2e6, 0.01, 1e4}, 2e6 / 1.189207115002721}},
       .home = {kTransportFiles, "Deliver", "1-window"}});
  models->push_back(
      {.id = "network/mathis",
       .sentence = "Rate of one Reno flow whose window loss halves, each packet acknowledged.",
       .formula = "(M / R) sqrt(3 / (2 p))",
       .source = "Mathis, Semke, Mahdavi, Ott, CCR 1997",
       .validity = "losses repaired without timeouts: p up to about 0.01",
       .output = "B/s",
       .inputs = {rtt(kDown), loss(kDown), segment},
       .evaluate =
           [](const std::vector<T>& x) {
             return (DataSize<T>::FromSi(x[2]) / RenoSegmentTime(Duration<T>::FromSi(x[0]), x[1]))
                 .si();
           },
       .known = {{"p = 0.015: ten segments a round trip", {0.01, 0.015, 1000}, 1e6},
                 {"p = 0.00015: a hundred", {0.01, 0.00015, 1000}, 1e7}},
       .home = {kCongestionFiles, "RenoSegmentTime", "2-loss"}});
  models->push_back(
      {.id = "network/pftk",
       .sentence = "Rate of one Reno flow with timeouts and delayed acknowledgements.",
       .formula = "M / ( R sqrt(4 p / 3) + T_0 min(1, 3 sqrt(3 p / 4)) p (1 + 32 p^2) )",
       .source = "Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998",
       .validity = "TCP without selective acknowledgements; today's Linux has far fewer timeouts",
       .output = "B/s",
       .inputs = {rtt(kDown), loss(kDown), timeout(kDown), segment},
       .evaluate =
           [](const std::vector<T>& x) {
             return (DataSize<T>::FromSi(x[3]) /
                     PftkSegmentTime(Duration<T>::FromSi(x[0]), x[1], Duration<T>::FromSi(x[2]), 2))
                 .si();
           },
       .known = {{"p = 0.03: 0.2 R + 0.45 x 0.03 x 1.0288 T_0",
                  {0.1, 0.03, 0.2, 1000},
                  1000 / (0.02 + 0.2 * 0.0138888)},
                 {"p = 0.1875: every loss a timeout, 0.5 R + 0.1875 x 2.125 T_0",
                  {0.1, 0.1875, 0.2, 1000},
                  1000 / (0.05 + 0.2 * 0.3984375)}},
       .home = {kCongestionFiles, "PftkSegmentTime", "2-loss"}});
  models->push_back(
      {.id = "network/cubic",
       .sentence =
           "Segments a second of one CUBIC flow: its own pace, or Reno's where that is more.",
       .formula = "max( sqrt(3 / (2 p)) / R, (0.4 x 3.7 / 1.2)^(1/4) R^(-1/4) p^(-3/4) )",
       .source = "RFC 9438",
       .validity = "losses repaired without timeouts; within a cluster the Reno region",
       .output = "1/s",
       .constants = "C = 0.4 segments/s^3",
       .inputs = {rtt(kDown), loss(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             const Duration<T> each =
                 AvoidanceSegmentTime(Duration<T>::FromSi(x[0]), x[1], CongestionControl::kCubic);
             return 1.0 / each.si();
           },
       .known = {{"the Reno region: ten segments a round trip of 10 ms", {0.01, 0.015}, 1000},
                 {"a long way with little loss: 1.2333^(1/4) 10^4.5 a round trip of 1 s",
                  {1, 1e-6},
                  33324.99687}},
       .home = {kCongestionFiles, "AvoidanceSegmentTime", "2-loss"}});
  models->push_back(
      {.id = "network/sack_recovery",
       .sentence =
           "Rate of one CUBIC or Reno flow today: a round trip for each loss, a timer for a "
           "loss of what was sent again.",
       .formula = "M / ( R sqrt(2 p / 3) + p R + p^2 T_0 )",
       .source = "Mathis et al., CCR 1997; RFC 6675; RFC 8985; RFC 6298",
       .validity = "p up to 0.05 in the Reno region; CUBIC has more timeouts beyond",
       .output = "B/s",
       .inputs = {rtt(kDown), loss(kDown), timeout(kDown), segment},
       .evaluate =
           [](const std::vector<T>& x) {
             return (DataSize<T>::FromSi(x[3]) /
                     SackSegmentTime(Duration<T>::FromSi(x[0]), x[1], Duration<T>(),
                                     Duration<T>::FromSi(x[2]), CongestionControl::kReno))
                 .si();
           },
       .known = {{"p = 0.015: R/10 + 0.015 R + 0.000225 T_0",
                  {0.01, 0.015, 0.2, 1000},
                  1000 / 0.001195},
                 {"p = 0.06: R/5 + 0.06 R + 0.0036 T_0", {0.1, 0.06, 1, 1000}, 1000 / 0.0296}},
       .home = {kCongestionFiles, "SackSegmentTime", "2-loss"}});
  models->push_back(
      {.id = "network/loss_events",
       .sentence = "Losses of whole bursts of an offloading sender count once each.",
       .formula = "max( p / 45.3, (2 p K R / (tau + sqrt(tau^2 + 4 p K^2 R^2)))^2 ), K^2 = 2/3",
       .source = "Linux, net/ipv4/tcp_output.c: packets of 1/1024 s, 64 KiB at most",
       .validity =
           "loss made where offloaded packets are still whole, as an emulator on the sender",
       .output = "",
       .inputs = {loss(kUp),
                  rtt(kUp),
                  {"tau", "s", 1e-6, 1e-2, kDown, "length of a sender's bursts"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return LossEventRate(x[0], Duration<T>::FromSi(x[1]), Duration<T>::FromSi(x[2]));
           },
       .known = {{"slow flows: bursts of one packet", {0.015, 1, 1e-6}, 0.015 / 1.00001},
                 {"fast flows: bursts of 64 KiB", {0.01, 1e-5, 1e-2}, 0.01 * 1448 / 65536},
                 {"K R = tau sqrt(6): p_e + sqrt(p_e / 6) = p, 0.01 + 0.04082",
                  {0.05082482904638630, 0.003, 0.001},
                  0.01}},
       .home = {kCongestionFiles, "LossEventRate", "2-loss"}});
  models->push_back(
      {.id = "network/window_rounds",
       .sentence = "Round trips until the unluckiest packet of a full window has arrived.",
       .formula = "1 + sum_j ( 1 - (1 - p^j)^(W/M) )",
       .source = "expected largest of geometric values, counted",
       .validity = "flows that a fixed window limits; losses of single packets",
       .output = "",
       .inputs = {loss(kUp), window(kUp), {"M", "B", 500, 9000, kDown, "payload of a segment"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return WindowRounds(x[0], DataSize<T>::FromSi(x[1]) / DataSize<T>::FromSi(x[2]));
           },
       .known = {{"one packet: 1 / (1-p)", {0.2, 8e3, 8e3}, 1.25},
                 {"two packets: 2 / (1-p) - 1 / (1-p^2)", {0.2, 8e3, 4e3}, 2.5 - 1 / 0.96}},
       .home = {kCongestionFiles, "WindowRounds", "1-window"}});
  models->push_back(
      {.id = "network/bbr",
       .sentence = "Rate of one BBR flow: the line's, less what is sent again, or its window's.",
       .formula = "(1-p) (B^-4 + (W / (R E))^-4)^(-1/4), E as in network/window_rounds",
       .source = "Cardwell, Cheng, Gunn, Yeganeh, Jacobson, ACM Queue 14 (2016)",
       .validity = "p up to about 0.2 on recent Linux; some published runs fall off much earlier",
       .output = "B/s",
       .constants = "M = 1448 B",
       .inputs = {line(kUp), rtt(kDown), loss(kDown), window(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             Path<T> path = EntryPath(x[0], x[1], x[2]);
             path.congestion = CongestionControl::kBbr;
             path.window = DataSize<T>::FromSi(x[3]);
             return Deliver(path, 1).si();
           },
       .known = {{"a large window: the line, less a fifth", {1e6, 1e-5, 0.2, 1e8}, 0.8e6},
                 {"a window of one packet a second, E = 1/(1-p): 1448 x 0.8 x 0.8",
                  {1e11, 1, 0.2, 1448},
                  926.72}},
       .home = {kTransportFiles, "Deliver", "3-one-rate"}});
  models->push_back(
      {.id = "network/transport_bandwidth",
       .sentence = "What two CUBIC flows deliver on one link: line, window and loss joined.",
       .formula =
           "(1-p) (B^-4 + (2 W/(R E))^-4 + (2 M/t)^-4)^(-1/4), t as in network/sack_recovery",
       .source = "Mathis et al., CCR 1997; RFC 9438; RFC 8985; measured corner",
       .validity = "transfers of many round trips, p up to 0.05, losses of single packets",
       .output = "B/s",
       .constants = "M = 1448 B, C = 0.4 segments/s^3",
       .inputs = {line(kUp), rtt(kDown), loss(kDown), window(kUp), timeout(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             Path<T> path = EntryPath(x[0], x[1], x[2]);
             path.window = DataSize<T>::FromSi(x[3]);
             path.timeout = Duration<T>::FromSi(x[4]);
             return Deliver(path, kEntryFlows).si();
           },
       .known = {{"a slow line: the line", {1e6, 1e-5, 1e-6, 1e8, 1e-3}, 0.999999e6},
                 {"loss alone, p = 0.015: 0.985 x 2 x 1448 / 1.195 ms",
                  {1e11, 0.01, 0.015, 1e8, 0.2},
                  0.985 * 2896 / 0.001195}},
       .home = {kTransportFiles, "Deliver", "3-one-rate"}});
  models->push_back(
      {.id = "network/slow_start",
       .sentence = "Time of a message on one flow that begins with ten segments.",
       .formula =
           "m/B + R ( K - (2^K - 1) I/(B R) ), K = log2 min( B R/I, (1 + m/I)/2 ), I = 14480 B",
       .source = "Cardwell, Savage, Anderson, INFOCOM 2000; RFC 6928",
       .validity = "no loss; after more than a second of silence, or on a new connection",
       .constants = "I = 14480 B",
       .inputs = {line(kDown), rtt(kUp), message(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             Path<T> path = EntryPath(x[0], x[1], T(0.0));
             path.window = Gigabytes(1e9);  // no limit
             const DataSize<T> bytes = DataSize<T>::FromSi(x[2]);
             return (bytes / Deliver(path, 1) + SlowStartDelay(path, bytes, 1)).si();
           },
       .known = {{"ten segments fill the pipe: nothing is lost", {1e6, 0.01, 1e6}, 1},
                 {"a pipe of 320 segments: R (5 - 31/32)",
                  {4633600, 0.1, 1e8},
                  1e8 / 4633600 + 0.403125}},
       .home = {kSlowStartFiles, "SlowStartDelay", "5-slow-start"}});
  models->push_back(
      {.id = "network/others",
       .sentence = "Exchanges of two other jobs on a shared link, on average over ours.",
       .formula = "(r_1 + r_2 + 2 r_1 r_2) / (1 + r_1 r_2)",
       .source = "Baskett, Chandy, Muntz, Palacios, J. ACM 22 (1975)",
       .validity = "steps that drift against each other; a fair share for each exchange",
       .output = "",
       .inputs = {{"r_1", "", 1e-3, 1, kUp, "share of its step in which another job sends"},
                  {"r_2", "", 1e-3, 1, kUp, "that of a second one"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return OthersOnLink<T>(std::span<const T>(x.data(), x.size()));
           },
       .known = {{"two that send half of the time", {0.5, 0.5}, 1.2},
                 {"two that send all the time", {1, 1}, 2}},
       .home = {kSharingFiles, "OthersOnLink", "18-links-that-jobs-share"}});
  models->push_back(
      {.id = "network/background",
       .sentence = "What a ring has of a link that other traffic is on.",
       .formula = "(B - min(b, 2.5 B/(3.5+o))) / (1+o)",
       .source = "derived: shares at each moment, and a copy that makes up for them between "
                 "exchanges; measured beside rings of TCP: it counts as 2.5 of them",
       .validity = "one flow that gives way as TCP does",
       .output = "B/s",
       .inputs = {{"B", "B/s", 1e6, 1e11, kUp, "line rate of the link"},
                  {"b", "B/s", 1e5, 1e11, kDown, "what the other traffic sends, each way"},
                  {"o", "", 1e-3, 1e2, kDown, "exchanges of other jobs on the link"}},
       .evaluate =
           [](const std::vector<T>& x) {
             const DataRate<T> link = DataRate<T>::FromSi(x[0]);
             const DataRate<T> copy = DataRate<T>::FromSi(x[1]);
             return ((link - TakenByBackground(link, copy, x[2], true)) / (1.0 + x[2])).si();
           },
       .known = {{"a copy of a fifth, and no other job", {1e9, 2e8, 0}, 8e8},
                 {"a copy and two jobs who want all of it", {9e8, 9e8, 1}, 2e8}},
       .home = {kSharingFiles, "TakenByBackground", "18-links-that-jobs-share"}});
  const auto core = [&](const char* id, const CoreForm& form, const char* sentence,
                        Crossing<T> (*evaluate)(const NetworkCore<T>&),
                        const std::vector<KnownCase>& known) {
    models->push_back(
        {.id = id,
         .sentence = sentence,
         .formula = form.formula,
         .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005) (the rounds of "
                   "halving-doubling); counted: messages between switches",
         .validity = "nodes that fill one switch after another; evenly shared uplinks",
         .output = "",
         .inputs = {oversubscription},
         .evaluate =
             [evaluate](const std::vector<T>& x) {
               return evaluate(NetworkCore<T>{x[0], kEntrySwitch}).longer;
             },
         .known = known,
         .home = {kCoreFiles, "NetworkCore", "19-a-core-that-is-oversubscribed"}});
  };
  core("network/core_ring", kCoreOfRing,
       "Time of a byte of a ring of 64 nodes, 16 on a switch (S).",
       [](const NetworkCore<T>& c) { return c.OfRing(64); },
       {{"uplinks of a 16th carry the one flow", {16}, 1}, {"of a 64th", {64}, 4}});
  core("network/core_tree", kCoreOfTree,
       "Time of a byte of two trees over 64 nodes, 16 on a switch (S): X is 6.",
       [](const NetworkCore<T>& c) { return c.OfTree(64); },
       {{"uplinks as fast as the links", {1}, 1},
        {"six halves leave a switch whose links send 64", {32}, 3}});
  core("network/core_halving_doubling", kCoreOfHalvingDoubling,
       "Time of a byte of halving-doubling among 64 nodes, 16 on a switch: of its bytes v, 3/63, "
       "leave a switch, and u, 60/63, do not.",
       [](const NetworkCore<T>& c) { return c.OfHalvingDoubling(64); },
       {{"uplinks as fast as the links", {1}, 1},
        {"uplinks of a 64th: 3/63 of the bytes cross", {64}, 4}});
  core("network/core_share", kCoreOfShare,
       "Time of a byte of 64 nodes (N), 16 on a switch (S), half of whose bytes (s) leave it.",
       [](const NetworkCore<T>& c) { return c.OfShare(64, 0.5); },
       {{"uplinks of a half carry it", {2}, 1}, {"uplinks of a quarter", {4}, 2}});
  core("network/core_some", kCoreOfSome,
       "Time of a byte of 64 nodes (N), 16 on a switch (S), that send to servers on 8 (n).",
       [](const NetworkCore<T>& c) { return c.OfSome(64, 8); },
       {{"uplinks of a half carry it", {2}, 1}, {"uplinks of a quarter", {4}, 96.0 / 63}});
  core("network/core_apart", kCoreOfAllApart,
       "Time of a byte between 8 nodes (N) and others on other switches of 16 (S).",
       [](const NetworkCore<T>& c) { return c.OfAllApart(8); },
       {{"half a switch, uplinks of a half", {2}, 1},
        {"half a switch, uplinks of a quarter", {4}, 2}});
  models->push_back(
      {.id = "network/barrier",
       .sentence = "Time until the slowest of eight lossy CUBIC flows has sent its message.",
       .formula = "m/M (t + sqrt((z s / sqrt(4 + 4 p m/M))^2 + (T_0 min(z p sqrt(M/m), 7 "
                  "p^2))^2)), z = 1.434, t and s (its first term) as in network/sack_recovery",
       .source = "Altman, Avrachenkov, Barakat, SIGCOMM 2000; Blom 1958",
       .validity = "independent flows, none held by its line; p up to 0.05",
       .constants = "M = 1448 B, C = 0.4 segments/s^3",
       .inputs = {rtt(kUp), loss(kUp), timeout(kUp), message(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             Path<T> path = EntryPath(T(1e9), x[0], x[1]);
             path.timeout = Duration<T>::FromSi(x[2]);
             const DataSize<T> bytes = DataSize<T>::FromSi(x[3]);
             return (LimitsOfFlow(path, Barrier<T>{bytes, kEntryBarrierFlows}).loss * bytes).si();
           },
       .known = {{"p = 0.06, 400 segments: hardly a timer, x = z R/5 / (2 sqrt(25))",
                  {0.1, 0.06, 1e-3, 579200},
                  400 * (0.0260036 + 1.43420016 * 0.00200000225)},
                 {"the same with timers alone: x = z T_0 sqrt(0.0036 / 400)",
                  {1e-5, 0.06, 5, 579200},
                  400 * (0.0180026 + 1.43420016 * 0.015)}},
       .home = {kTransportFiles, "LimitsOfFlow", "4-barrier"}});
  models->push_back(
      {.id = "network/retransmission",
       .sentence = "Bytes on the wire, with what is lost and sent again.",
       .formula = "m / (1-p)",
       .source = "geometric series",
       .validity = "each lost packet is sent again, and nothing else is",
       .output = "B",
       .inputs = {message(kUp), loss(kUp)},
       .evaluate =
           [](const std::vector<T>& x) { return WireBytes(DataSize<T>::FromSi(x[0]), x[1]).si(); },
       .known = {{"a fifth lost: a quarter more", {1e6, 0.2}, 1.25e6},
                 {"a tenth lost: a ninth more", {9e6, 0.1}, 1e7}},
       .home = {kTransportFiles, "WireBytes", "3-one-rate"}});
  models->push_back(
      {.id = "network/incast",
       .sentence = "Time of 32 senders' messages into one receiver, with one timer if they overrun "
                   "its queue.",
       .formula = "32 m / B + (32 > Q / (4 M) ? T_0 : 0)",
       .source = "Phanishayee et al., FAST 2008; Vasudevan et al., SIGCOMM 2009; RFC 5681",
       .validity = "a bound: one timer is the least that a collapse costs, and pacing avoids it",
       .constants = "M = 1448 B",
       .inputs = {line(kDown),
                  {"Q", "B", 1e4, 1e7, kDown, "bytes that the queue before the receiver holds"},
                  timeout(kUp),
                  message(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             return (DataSize<T>::FromSi(x[3]) * kEntrySenders / DataRate<T>::FromSi(x[0]) +
                     IncastWait(DataSize<T>::FromSi(x[1]), kEntrySenders,
                                Duration<T>::FromSi(x[2])))
                 .si();
           },
       .known = {{"512 KiB are 90 senders' worth: no collapse", {1e8, 524288, 0.2, 1e6}, 0.32},
                 {"64 KiB are 11 senders' worth: collapse", {1e8, 65536, 0.2, 1e6}, 0.52}},
       .home = {kIncastFiles, "IncastWait", "6-incast"}});

  // ---- Hops: a node with two neighbours, as in a ring, and one connection.

  const ModelInput host{"B_host", "B/s", 5e7, 2e12, kUp, "rate of an exchange within the node"};
  models->push_back(
      {.id = "network/path",
       .sentence = "Time of a byte from one of eight nodes to two neighbours: the line, what flows "
                   "carry on the slowest hop, window and loss of the one connection in use, joined "
                   "with knees.",
       .formula = "|| || ||1/B, (1 + s z)/(2 B_flow)||_4, R E/W||_2, t/M||_4 / (1-p), z = 1.434, E "
                  "and t as in network/window_rounds and network/sack_recovery",
       .source = "as network/transport_bandwidth; the knee of 2 as collective/segments; public "
                 "traces of 1 to 64 devices",
       .validity = "a collective among three nodes or more; between two a byte has one neighbour "
                   "and the knee of R E/W is 1",
       .output = "s/B",
       .constants = "M = 1448 B, C = 0.4 segments/s^3",
       .inputs = {line(kDown),
                  {"B_flow", "B/s", 1e6, 1e11, kDown, "most that the flows to one peer carry"},
                  rtt(kUp),
                  loss(kUp),
                  window(kDown),
                  timeout(kUp),
                  {"s", "", 1e-4, 2, kUp,
                   "hop spread: of what flows carry between pairs of nodes"}},
       .evaluate =
           [](const std::vector<T>& x) {
             Path<T> path = EntryPath(x[0], x[2], x[3]);
             path.window = DataSize<T>::FromSi(x[4]);
             path.timeout = Duration<T>::FromSi(x[5]);
             const FlowShape ring{2, 1, kSegmentKnee, false, 8, ExpectedNormalRank(8, 8)};
             return (1.0 / DeliverTo(path, ring, {DataRate<T>::FromSi(x[1]), x[6]}).bandwidth).si();
           },
       .known = {{"a slow line: the line", {1e6, 1e11, 1e-5, 1e-6, 1e8, 1e-3, 0}, 1e-6 / 0.999999},
                 {"two slow flows", {1e11, 1e6, 1e-5, 1e-6, 1e8, 1e-3, 0}, 5e-7 / 0.999999},
                 {"the slowest of eight: 1.4342 standard deviations",
                  {1e11, 1e6, 1e-5, 1e-6, 1e8, 1e-3, 0.5},
                  8.5855085e-7},
                 {"without loss: 3 ns and 4 ns at a right angle",
                  {1e9 / 3, 1e15, 0.004, 0, 1e6, 0.2, 0},
                  5e-9}},
       .home = {kHopFiles, "DeliverTo", "3-a-hop-between-nodes"}});
  models->push_back(
      {.id = "network/hop_rate",
       .sentence = "Rate of a hop between two nodes with four devices in use on each: the slower "
                   "of the path and the shared host.",
       .formula = "1 / || P, (1 + d (g-1)) / B_host ||_4, g = 4",
       .source = "public traces of 1 to 64 devices, docs/explanation",
       .validity = "equal nodes; a switch that other jobs leave alone",
       .output = "B/s",
       .inputs = {{"P", "s/B", 1e-11, 1e-6, kDown, "time of a byte on the path: network/path"},
                  host,
                  {"d", "", 1e-4, 2, kDown, "host sharing: growth for each further device"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return HopRate(1.0 / DurationPerByte<T>::FromSi(x[0]),
                            SharedHost(DataRate<T>::FromSi(x[1]), x[2], 4))
                 .si();
           },
       .known = {{"path and host at 1 ns each: the fourth root of 2",
                  {1e-9, 1e9, 0},
                  8.408964152537145e8},
                 {"three further devices share a host that sets the pace: 1.3 ns",
                  {1e-14, 1e9, 0.1},
                  1e9 / 1.3}},
       .home = {kHopFiles, "HopRate", "3-a-hop-between-nodes"}});
  models->push_back(
      {.id = "network/hop_latency",
       .sentence = "Cost of a message on its way over a hop, before its bytes.",
       .formula = "alpha_link + R/2",
       .source = "Hockney, Parallel Computing 20 (1994)",
       .validity = "a round trip of the two ways alike; one that nobody states is 0",
       .inputs = {{"alpha_link", "s", 5e-7, 0.1, kUp, "one-way cost of a message at the hosts"},
                  rtt(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             return HopLatency(Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1])).si();
           },
       .known = {{"50 us and half of 1 ms", {5e-5, 1e-3}, 5.5e-4},
                 {"no round trip stated", {5e-5, 0}, 5e-5}},
       .home = {kHopFiles, "HopLatency", "3-a-hop-between-nodes"}});
  models->push_back(
      {.id = "network/go_back_n",
       .sentence =
           "Share of a line that RDMA reaches where packets are lost: after a loss it sends again "
           "all that was on the way.",
       .formula = "1 / (1 + p N/(1-p)), N = B R/M",
       .source = "Mittal et al., SIGCOMM 2018 (recovery of RDMA over Ethernet)",
       .validity = "go-back-N; cards that repeat only what was lost fare better",
       .output = "1",
       .constants = "M = 1448 B",
       .inputs = {{"B", "B/s", 1e6, 1e11, Trend::kNeverRises, "line rate, less headers"},
                  rtt(kDown),
                  loss(kDown)},
       .evaluate =
           [](const std::vector<T>& x) { return T(GoBackShare(EntryPath(x[0], x[1], x[2]))); },
       .known = {{"nothing lost", {1e9, 1e-3, 0}, 1},
                 {"one packet on the way, half of them lost", {1.448e6, 1e-3, 0.5}, 0.5}},
       .home = {{"model/network/transport.h", "docs/explanation/step-model.md",
                 "tests/model/hop_test.cc"},
                "GoBackShare",
                "3-a-hop-between-nodes"}});
  models->push_back(
      {.id = "network/connection",
       .sentence =
           "Time of a byte on the one connection between a worker and a server: that of its "
           "window or that of its loss, whichever is longer.",
       .formula = "max(R E/W, t/M) / (1-p), E and t as in network/window_rounds and "
                  "network/sack_recovery",
       .source = "as network/transport_bandwidth",
       .validity = "exchanges with servers, whose other limits are the two ends' links",
       .output = "s/B",
       .constants = "M = 1448 B, C = 0.4 segments/s^3",
       .inputs = {rtt(kUp), loss(kUp), window(kDown), timeout(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             Path<T> path = EntryPath(T(1e9), x[0], x[1]);
             path.window = DataSize<T>::FromSi(x[2]);
             path.timeout = Duration<T>::FromSi(x[3]);
             return ConnectionTime(LimitsOfFlow(path), path.loss).si();
           },
       .known = {{"loss, p = 0.015: 1.195 ms a segment",
                  {0.01, 0.015, 1e8, 0.2},
                  0.001195 / 1448 / 0.985},
                 {"no loss: a window in each round trip", {0.01, 0, 1e6, 0.2}, 1e-8}},
       .home = {kHopFiles, "ConnectionTime", "3-a-hop-between-nodes"}});
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_CATALOG_NETWORK_ENTRIES_H_
