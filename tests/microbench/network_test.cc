// The probe between hosts that are threads of this process, and what it makes of measured rows.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "data/io/network_profile_file.h"
#include "microbench/network/agent.h"
#include "microbench/network/coordinator.h"
#include "microbench/network/door.h"
#include "microbench/network/findings.h"
#include "microbench/network/host_facts.h"
#include "microbench/network/meeting.h"
#include "microbench/network/message.h"
#include "microbench/network/protocol.h"
#include "microbench/network/schedule.h"
#include "microbench/network/socket.h"
#include "microbench/network/tcp_info.h"
#include "microbench/network/token.h"
#include "microbench/network/traffic.h"
#include "tests/support/input_error.h"

namespace stepcast::network {
namespace {

constexpr const char* kToken = "a token of tests";
using Kind = NetworkKind;

// ---- Messages.

RC_GTEST_PROP(NetworkMessage, IsReadAsItWasWritten, ()) {
  const auto fields = *rc::gen::container<std::map<std::string, std::string>>(
      rc::gen::arbitrary<std::string>(), rc::gen::arbitrary<std::string>());
  Message message("verb");
  for (const auto& [key, value] : fields) message.Set(key, value);
  const std::string line = message.Line();
  RC_ASSERT(line.find('\n') == std::string::npos);
  RC_ASSERT(Message::Parse(line).fields() == fields);
}

RC_GTEST_PROP(NetworkMessage, AnyBytesAreAMessageOrAnError, ()) {
  try {
    const Message message = Message::Parse(*rc::gen::arbitrary<std::string>());
    message.Number("rate", 0, 1);
  } catch (const NetworkError&) {
  }
}

TEST(NetworkMessage, ANumberIsOneWithinItsRange) {
  for (const char* text : {"", "x", "1x", "nan", "inf", "-1", "1e300", "0x10", "11"}) {
    EXPECT_THROW(Message("got").Set("rate", text).Number("rate", 0, 10), NetworkError) << text;
  }
  EXPECT_THROW(Message("got").Number("rate", 0, 10), NetworkError);
  EXPECT_THROW(Message("got").Set("n", "1.5").Integer("n", 0, 10), NetworkError);
  EXPECT_EQ(Message("got").Set("rate", "2.5").Number("rate", 0, 10), 2.5);
  for (const double end : {-3.0, 10.0}) {
    EXPECT_EQ(Message("got").Set("rate", end).Number("rate", -3, 10), end);
  }
}

std::string ErrorTextOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const NetworkError& e) {
    return e.what();
  }
  return "";
}

// What stands for itself is read by people; all else, and what separates, is hexadecimal.
TEST(NetworkMessage, IsALineThatPeopleCanRead) {
  EXPECT_EQ(Message("got").Set("b", "x=1 %").Set("a", "!~\x7f\xff\n").Line(),
            "got a=!~%7f%ff%0a b=x%3d1%20%25");
  const Message read = Message::Parse("g%6ft a=%2B");
  EXPECT_EQ(read.verb(), "got");
  EXPECT_EQ(read.Text("a"), "+");
  EXPECT_EQ(Message::Parse("").verb(), "");
  for (const char* line : {"got a", "got  a=1", "got a=1=2", "got a=%4", "got a=%", "got a=%4g",
                           "got a=\x7f", "got a=\t"}) {
    EXPECT_EQ(ErrorTextOf([&] { Message::Parse(line); }), "sent what is no message") << line;
  }
}

TEST(NetworkMessage, SaysWhatIsWrongWithAValue) {
  const Message message =
      Message("got").Set("rate", "1 1").Set("n", 1.5).Set("long", std::string(60, '7'));
  EXPECT_EQ(ErrorTextOf([&] { message.Number("rate", 0, 10); }),
            "sent rate '1%201', which is not from 0 to 10");
  EXPECT_EQ(ErrorTextOf([&] { message.Integer("n", 0, 10); }), "sent a broken n");
  EXPECT_EQ(ErrorTextOf([&] { message.Text("peer"); }), "sent no peer");
  EXPECT_EQ(ErrorTextOf([&] { message.Number("long", 0, 10); }),
            "sent long '" + std::string(40, '7') + "', which is not from 0 to 10");
}

TEST(NetworkToken, IsAnotherEachTime) {
  const std::string word = RandomWord();
  EXPECT_EQ(word.size(), 32U);
  EXPECT_EQ(word.find_first_not_of("0123456789abcdef"), std::string::npos) << word;
  EXPECT_NE(word, RandomWord());
}

TEST(NetworkToken, IsTheSameToItsEndAndNoFurther) {
  using Pair = std::pair<const char*, const char*>;
  for (const auto& [a, b] : {Pair("", ""), Pair("abc", "abc")}) EXPECT_TRUE(SameToken(a, b)) << a;
  for (const auto& [a, b] : {Pair("abc", "abd"), Pair("abc", "ab"), Pair("ab", "abc"),
                             Pair("abab", "ab"), Pair("", "ab"), Pair("ab", "")}) {
    EXPECT_FALSE(SameToken(a, b)) << a << " for " << b;
  }
}

// ---- What messages stand for.

RC_GTEST_PROP(NetworkProtocol, EachHostHasANameOfItsOwn, ()) {
  // Few letters, so that many names are the same, or become it.
  const auto name = rc::gen::container<std::string>(rc::gen::element('a', '-', '+', '1'));
  std::vector<NetworkHost> hosts;
  for (const std::string& of : *rc::gen::container<std::vector<std::string>>(name)) {
    hosts.push_back({"a" + of, "", {}});
  }
  NameHosts({}, &hosts);
  std::set<std::string> names;
  for (const NetworkHost& host : hosts) {
    RC_ASSERT(host.name.find('+') == std::string::npos);
    RC_ASSERT(names.insert(host.name).second);
  }
}

// Numbers stand where names would not tell hosts apart, and nowhere else.
TEST(NetworkProtocol, HostsOfOneNameAreNumbered) {
  const auto named = [](const std::vector<std::string>& names,
                        const std::vector<std::string>& list) {
    std::vector<NetworkHost> hosts;
    for (const std::string& name : names) hosts.push_back({name, "", {}});
    NameHosts(list, &hosts);
    std::vector<std::string> now;
    for (const NetworkHost& host : hosts) now.push_back(host.name);
    return now;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(named({"a", "b", "c"}, {}), (Names{"a", "b", "c"}));
  EXPECT_EQ(named({"a", "b", "a"}, {}), (Names{"a-0", "b", "a-2"}));
  EXPECT_EQ(named({"x", "b+", "b-"}, {"a"}), (Names{"a", "b--1", "b--2"}));
  EXPECT_EQ(named({"a", "a", "a-1"}, {}), (Names{"a-0-0", "a-1-1", "a-1-2"}));
}

TEST(NetworkProtocol, HostsThatSayNothingReadableDoNotJoin) {
  const auto join = [](const std::string& key, const std::string& value) {
    Message hello(kJoin);
    hello.Set("rank", 1).Set("of", 2).Set("port", 9).Set("name", "b").Set("fact.mtu", "9000");
    return ReadJoining(hello.Set(key, value), 2);
  };
  EXPECT_EQ(join("name", "n 1").name, "n 1");
  EXPECT_EQ(join("name", "b").facts, (std::map<std::string, std::string>{{"mtu", "9000"}}));
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"name", ""},
                                                        {"name", " "},
                                                        {"name", "a\nb"},
                                                        {"name", "\x1b[31m"},
                                                        {"name", "\xff"},
                                                        {"name", std::string(254, 'x')},
                                                        {"fact.", "x"},
                                                        {"fact.mtu", " "},
                                                        {"fact.mtu", "\t"},
                                                        {"rank", "2"},
                                                        {"of", "1"},
                                                        {"of", "3"},
                                                        {"port", "0"}}) {
    EXPECT_THROW(join(key, value), NetworkError) << key << " " << value;
  }
}

// One end of a path, as an honest host tells of it, but for one value.
NetworkRow Told(NetworkKind kind, const std::string& verb, const std::string& key = "problem",
                const std::string& value = "") {
  Message told(verb);
  told.Set("peer", verb == "sent" ? 1 : 0).Set("problem", "").Set("rate", 1e9);
  told.Set("median", 2e-4).Set("p10", 1e-4).Set("segments", 1e6).Set("retransmitted", 20);
  told.Set("needless", 3).Set("rtt", 3e-4).Set("min_rtt", 1e-4).Set("window", 20);
  told.Set("segment", 1448).Set("receiver_limited", 0.25).Set("sender_limited", 0.125);
  told.Set("congestion_control", "cubic").Set(key, value);
  std::vector<NetworkRow> rows(1);
  rows[0].kind = kind;
  rows[0].to = 1;
  constexpr double kLongestS = 5;
  TakeResult(told, verb == "sent" ? 0 : 1, {{"a", "", {}}, {"b", "", {}}}, kLongestS, &rows);
  return rows[0];
}

TEST(NetworkProtocol, EachNumberOfAResultIsItsOwn) {
  EXPECT_EQ(Told(Kind::kPaced, "got").bytes_per_s, 1e9);
  EXPECT_FALSE(Told(Kind::kPaced, "got").tcp);
  EXPECT_FALSE(Told(Kind::kLatency, "got").bytes_per_s);
  for (const Kind kind : {Kind::kLatency, Kind::kPaced}) {
    const NetworkRow row = Told(kind, "sent");
    EXPECT_EQ(row.rtt_median_s.has_value(), kind == Kind::kLatency);
    EXPECT_EQ(row.rtt_median_s.value_or(2e-4), 2e-4);
    EXPECT_EQ(row.rtt_p10_s.value_or(1e-4), 1e-4);
    EXPECT_FALSE(row.bytes_per_s);
    ASSERT_TRUE(row.tcp);
    EXPECT_EQ(row.tcp->segments, 1'000'000);
    EXPECT_EQ(row.tcp->retransmitted, 20);
    EXPECT_EQ(row.tcp->needless, 3);
    EXPECT_EQ(row.tcp->rtt_s, 3e-4);
    EXPECT_EQ(row.tcp->min_rtt_s, 1e-4);
    EXPECT_EQ(row.tcp->window_segments, 20);
    EXPECT_EQ(row.tcp->segment_bytes, 1448);
    EXPECT_EQ(row.tcp->receiver_limited, 0.25);
    EXPECT_EQ(row.tcp->sender_limited, 0.125);
    EXPECT_EQ(row.tcp->congestion_control, "cubic");
  }
}

TEST(NetworkProtocol, ResultsThatCannotBeAreNone) {
  EXPECT_EQ(Told(Kind::kPaced, "got", "problem", "it broke").problem, "b: it broke");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"median", "6"},
                                                        {"median", "0"},
                                                        {"p10", "3e-4"},
                                                        {"segments", "19"},
                                                        {"retransmitted", "2e6"},
                                                        {"needless", "21"},
                                                        {"congestion_control", ""},
                                                        {"congestion_control", "\n"},
                                                        {"receiver_limited", "1.5"},
                                                        {"sender_limited", "1.5"},
                                                        {"segment", "1e9"},
                                                        {"problem", "\x1b[2J"},
                                                        {"peer", "2"}}) {
    EXPECT_THROW(Told(Kind::kLatency, "sent", key, value), NetworkError) << key << " " << value;
  }
  for (const char* rate : {"0", "1e-300", "1e15", "nan"}) {
    EXPECT_THROW(Told(Kind::kIncast, "got", "rate", rate), NetworkError) << rate;
  }
}

// A host that gives up closes the connection: the other end's word of that is no reason.
TEST(NetworkProtocol, WhoEndedAConnectionSaysWhy) {
  const auto heard = [](const std::string& of_sender, const std::string& of_receiver,
                        bool swapped) {
    std::vector<NetworkRow> rows(1);
    rows[0].kind = Kind::kPaced;
    rows[0].to = 1;
    for (const int rank : swapped ? std::vector<int>{1, 0} : std::vector<int>{0, 1}) {
      Message told(rank == 0 ? "sent" : "got");
      told.Set("peer", 1 - rank).Set("problem", rank == 0 ? of_sender : of_receiver);
      TakeResult(told, rank, {{"a", "", {}}, {"b", "", {}}}, 5, &rows);
    }
    return rows[0].problem;
  };
  for (const bool swapped : {false, true}) {
    EXPECT_EQ(heard(kClosed, "too busy", swapped), "b: too busy");
    EXPECT_EQ(heard("too busy", std::string(kBroke) + ": reset", swapped), "a: too busy");
  }
  EXPECT_EQ(heard("no answer in time", "too busy", false), "a: no answer in time");
}

TEST(NetworkProtocol, NobodyIsToMakeMoreConnectionsThanAStepHas) {
  const auto step = [](int tasks, int flows) {
    Message message("step");
    message.Set("id", 1).Set("kind", 2).Set("warm", 0.3).Set("seconds", 0.7);
    return ReadStep(message.Set("tasks", tasks).Set("flows", flows));
  };
  EXPECT_EQ(step(255, 1).tasks, 255) << "all send to one";
  EXPECT_EQ(step(4, 64).flows, 64) << "to two peers, and from two";
  EXPECT_THROW(step(512, 64), NetworkError);
  EXPECT_THROW(step(5, 64), NetworkError);
}

// Each value of a step is its own, up to the largest and least that it may be.
TEST(NetworkProtocol, StepsAndTasksAreReadAsTheyAre) {
  const auto message = [] {
    Message step("step");
    step.Set("id", kMostSteps).Set("kind", static_cast<int>(Kind::kIncast)).Set("flows", 2);
    return step.Set("warm", 3600).Set("seconds", 0.7).Set("tasks", 3);
  };
  const Step step = ReadStep(message());
  EXPECT_EQ(step.id, 1'000'000);
  EXPECT_EQ(step.kind, Kind::kIncast);
  EXPECT_EQ(step.flows, 2);
  EXPECT_EQ(step.warm_s, 3600);
  EXPECT_EQ(step.seconds, 0.7);
  EXPECT_EQ(step.tasks, 3);
  for (const auto& [key, value] : std::vector<std::pair<std::string, double>>{{"id", -1},
                                                                              {"id", 1e6 + 1},
                                                                              {"kind", -1},
                                                                              {"kind", 7},
                                                                              {"flows", 0},
                                                                              {"flows", 65},
                                                                              {"warm", -0.1},
                                                                              {"warm", 3601},
                                                                              {"seconds", -0.1},
                                                                              {"seconds", 3601},
                                                                              {"tasks", -1}}) {
    EXPECT_THROW(ReadStep(message().Set(key, value)), NetworkError) << key << " " << value;
  }
  EXPECT_THROW(ReadStep(Message("leap")), NetworkError);
  const auto task = [](const char* verb, int peer, double pace) {
    return ReadTask(Message(verb).Set("peer", peer).Set("pace", pace), 3);
  };
  EXPECT_TRUE(task("send", 2, 1e6).sends);
  EXPECT_EQ(task("send", 2, 1e6).peer, 2);
  EXPECT_EQ(task("send", 2, 1e6).pace, 1e6);
  EXPECT_FALSE(task("receive", 0, kMostPayload).sends);
  EXPECT_THROW(task("receive", 3, 0), NetworkError);
  EXPECT_THROW(task("receive", 0, -1), NetworkError);
  EXPECT_THROW(task("receive", 0, 1.1 * kMostPayload), NetworkError);
  EXPECT_EQ(ErrorTextOf([&] { task("go", 0, 0); }), "sent no task");
}

// Who sends along a path tells of it, and who receives: nobody tells for the other.
TEST(NetworkProtocol, APathIsToldOfByItsEnds) {
  const auto told = [](const char* verb, int rank, int peer) {
    std::vector<NetworkRow> rows(1);
    rows[0].kind = Kind::kPaced;
    rows[0].to = 1;
    return ErrorTextOf([&] {
      TakeResult(Message(verb).Set("peer", peer).Set("problem", "busy"), rank,
                 {{"a", "", {}}, {"b", "", {}}, {"c", "", {}}}, 5, &rows);
    });
  };
  const std::string nobody = "told of a path that nobody asked for";
  EXPECT_EQ(told("sent", 0, 1), "");
  EXPECT_EQ(told("got", 1, 0), "");
  EXPECT_EQ(told("sent", 1, 0), nobody);
  EXPECT_EQ(told("got", 0, 1), nobody);
  EXPECT_EQ(told("sent", 0, 2), nobody);
  EXPECT_EQ(told("got", 2, 0), nobody);
  EXPECT_EQ(told("lost", 0, 1), "sent what is no answer");
}

// A rate needs what both ends tell, a round trip the one of its sender; what has a problem keeps
// none of its numbers.
TEST(NetworkProtocol, ARowWithoutAPartIsNone) {
  const auto settled = [](Kind kind, bool by_sender, bool by_receiver, const char* problem) {
    NetworkRow row;
    row.kind = kind;
    row.problem = problem;
    if (by_sender && kind == Kind::kLatency) row.rtt_median_s = row.rtt_p10_s = 1e-3;
    if (by_sender) row.tcp = TcpFacts();
    if (by_receiver) row.bytes_per_s = 1e6;
    Settle("gone", &row);
    const bool all = row.tcp && (kind == Kind::kLatency ? row.rtt_median_s && row.rtt_p10_s
                                                        : row.bytes_per_s.has_value());
    const bool any = row.tcp || row.rtt_median_s || row.rtt_p10_s || row.bytes_per_s;
    EXPECT_EQ(all, row.problem.empty());
    EXPECT_EQ(any, row.problem.empty());
    return row.problem;
  };
  EXPECT_EQ(settled(Kind::kPaced, true, true, ""), "");
  EXPECT_EQ(settled(Kind::kPaced, true, false, ""), "gone");
  EXPECT_EQ(settled(Kind::kPaced, false, true, ""), "gone");
  EXPECT_EQ(settled(Kind::kPaced, true, true, "busy"), "busy");
  EXPECT_EQ(settled(Kind::kLatency, true, false, ""), "");
  EXPECT_EQ(settled(Kind::kLatency, false, true, ""), "gone");
  EXPECT_EQ(settled(Kind::kLatency, true, false, "busy"), "busy");
}

// ---- The schedule.

TEST(NetworkSchedule, EveryDirectionIsMeasuredOnceInAsFewRoundsAsCanBe) {
  for (int hosts = 2; hosts <= 9; ++hosts) {
    std::map<Kind, std::map<std::pair<int, int>, int>> seen;
    std::map<Kind, int> steps;
    for (const ProbeStep& step : MakeSchedule(hosts)) {
      ++steps[step.kind];
      std::map<int, std::set<int>> partners;
      for (const Edge& edge : step.edges) {
        EXPECT_NE(edge.from, edge.to);
        ++seen[step.kind][{edge.from, edge.to}];
        partners[edge.from].insert(edge.to);
        partners[edge.to].insert(edge.from);
      }
      if (step.kind == Kind::kIncast) continue;
      const std::size_t most = step.kind == Kind::kTwoPeers ? 2 : 1;
      for (const auto& [host, others] : partners) EXPECT_LE(others.size(), most);
    }
    const int rounds = hosts - 1 + hosts % 2;
    EXPECT_EQ(steps[Kind::kLatency], rounds);
    EXPECT_EQ(steps[Kind::kOneFlow], 2 * rounds);
    for (int a = 0; a < hosts; ++a) {
      for (int b = 0; b < hosts; ++b) {
        if (a == b) continue;
        for (const Kind kind :
             {Kind::kOneFlow, Kind::kSeveralFlows, Kind::kBothWays, Kind::kPaced}) {
          EXPECT_EQ((seen[kind][{a, b}]), 1) << a << " to " << b;
        }
        EXPECT_EQ((seen[Kind::kLatency][{a, b}]), a < b ? 1 : 0);
        if (hosts > 2) {
          EXPECT_EQ((seen[Kind::kIncast][{a, b}]), 1);
        }
      }
      if (hosts > 2) {
        EXPECT_EQ((seen[Kind::kTwoPeers][{a, (a + 1) % hosts}]), 1);
        EXPECT_EQ((seen[Kind::kTwoPeers][{a, (a + 2) % hosts}]), 1);
      }
    }
  }
}

TEST(NetworkSchedule, TakesItsTime) {
  const ProbeSettings settings = {2, 4};
  EXPECT_EQ(WarmSeconds(Kind::kLatency, settings, 0.2), 0);
  EXPECT_NEAR(WarmSeconds(Kind::kOneFlow, settings, 0), 0.6, 1e-12);
  EXPECT_NEAR(WarmSeconds(Kind::kOneFlow, settings, 0.2), 3.4, 1e-12) << "17 round trips";
  EXPECT_NEAR(MeasuredSeconds(Kind::kLatency, settings), 0.6, 1e-12);
  EXPECT_NEAR(MeasuredSeconds(Kind::kOneFlow, settings), 1.4, 1e-12);
  EXPECT_NEAR(MeasuredSeconds(Kind::kPaced, settings), 4, 1e-12);
  // Latency, one flow and several either way, both ways, paced; a tenth of a second behind each.
  EXPECT_NEAR(ExpectedSeconds(MakeSchedule(2), 0, settings), 0.7 + 5 * 2.1 + 4.7, 1e-12);
  // What is left falls by each step that is done.
  const std::vector<ProbeStep> steps = MakeSchedule(3);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_NEAR(ExpectedSeconds(steps, i, settings) - ExpectedSeconds(steps, i + 1, settings),
                ExpectedSeconds({steps[i]}, 0, settings), 1e-9)
        << i;
  }
  EXPECT_EQ(ExpectedSeconds(steps, steps.size(), settings), 0);
}

TEST(NetworkSchedule, SeveralFlowsAreThoseOfSomeKinds) {
  for (int kind = 0; kind < kNetworkKindCount; ++kind) {
    const std::set<Kind> alone = {Kind::kLatency, Kind::kOneFlow, Kind::kIncast};
    EXPECT_EQ(FlowsOf(static_cast<Kind>(kind), {2, 4}),
              alone.count(static_cast<Kind>(kind)) > 0 ? 1 : 4)
        << kNetworkKindNames[kind];
  }
}

TEST(TcpInfo, CountsOfFlowsAddUpAndTheRestAreMeans) {
  const TcpFacts one = {10, 3, 1, 0.02, 0.01, 8, 1448, 0.5, 0.25, "cubic"};
  const TcpFacts other = {30, 5, 2, 0.04, 0.03, 4, 1448, 0.25, 0.75, "cubic"};
  EXPECT_NEAR(Joined({other, one}).min_rtt_s, 0.01, 1e-12) << "whichever comes first";
  const TcpFacts joined = Joined({one, other});
  EXPECT_EQ(joined.segments, 40);
  EXPECT_EQ(joined.retransmitted, 8);
  EXPECT_EQ(joined.needless, 3);
  EXPECT_NEAR(joined.rtt_s, 0.03, 1e-12);
  EXPECT_NEAR(joined.min_rtt_s, 0.01, 1e-12) << "the least";
  EXPECT_NEAR(joined.window_segments, 6, 1e-12);
  EXPECT_EQ(joined.segment_bytes, 1448);
  EXPECT_NEAR(joined.receiver_limited, 0.375, 1e-12);
  EXPECT_NEAR(joined.sender_limited, 0.5, 1e-12);
  EXPECT_EQ(joined.congestion_control, "cubic");
}

// Two ends of a connection over the loopback.
struct Connected {
  Connected() {
    const Deadline deadline = Deadline::In(20);
    const Socket listener = Socket::Listen(LocalAddress("127.0.0.1"));
    near = Socket::Connect(listener.local(), nullptr, deadline);
    listener.Wait(POLLIN, deadline);
    far = listener.Accept();
  }

  Socket near;
  Socket far;
};

// What one end sends in turns arrives at the other, and is counted there and here.
TEST(TcpInfo, CountsWhatASocketSentAndGot) {
  const Connected ends;
  const Deadline deadline = Deadline::In(20);
  std::vector<char> bytes(1000);
  for (int i = 0; i < 10; ++i) {
    ends.near.Send(bytes, deadline);
    ends.far.Read(bytes, deadline);
    ends.far.Send({bytes.data(), 1}, deadline);
    ends.near.Read({bytes.data(), 1}, deadline);
  }
  const Arrived arrived = ReadArrived(ends.far);
  EXPECT_EQ(arrived.in_order, 10'000);
  EXPECT_NEAR(arrived.segments, 11, 1) << "one may come twice";
  EXPECT_NEAR(arrived.payload(), 1000, 200);
  EXPECT_GE(arrived.largest, 500);
  EXPECT_EQ(Arrived().payload(), 0);
  const TcpFacts sent = ReadTcpInfo(ends.near);
  EXPECT_GE(sent.segments, 10);
  EXPECT_LE(sent.segments, 10 + sent.retransmitted);
  EXPECT_GT(sent.rtt_s, 1e-6);
  EXPECT_LT(sent.rtt_s, 1);
  EXPECT_LE(sent.min_rtt_s, sent.rtt_s * 4);
  EXPECT_GE(sent.window_segments, 1);
  EXPECT_GE(sent.segment_bytes, 500);
  EXPECT_LE(sent.segment_bytes, 1 << 16);
}

TEST(NetworkSocket, LinesAreReadOneByOneAndEndSomewhere) {
  const Deadline deadline = Deadline::In(20);
  for (const std::size_t size : {LineSocket::kLongestLine - 1, LineSocket::kLongestLine}) {
    Connected ends;
    LineSocket reader(std::move(ends.far));
    ends.near.Send(std::string("a\n\nb c\n"), deadline);
    EXPECT_EQ(reader.Read(deadline), "a");
    EXPECT_EQ(reader.Read(deadline), "");
    EXPECT_EQ(reader.Read(deadline), "b c");
    EXPECT_FALSE(reader.TryRead());
    ends.near.Send(std::string(size, 'x') + '\n', deadline);
    if (size < LineSocket::kLongestLine) {
      EXPECT_EQ(reader.Read(deadline).size(), size);
    } else {
      EXPECT_EQ(ErrorTextOf([&] { reader.Read(deadline); }), "sent a line without an end");
    }
  }
}

TEST(NetworkSocket, SaysWhyItDoesNot) {
  const Socket first = Socket::Listen(LocalAddress("127.0.0.1"));
  const auto fails = [](const std::string& why, const std::function<void()>& act) {
    const std::string error = ErrorTextOf(act);
    EXPECT_NE(error.find(why), std::string::npos) << error;
  };
  fails("another program listens there", [&] { Socket::Listen(first.local()); });
  fails("this host does not have that address",
        [] { Socket::Listen(Resolve("192.0.2.1", 0).front()); });
  fails("nowhere is no interface or address of this host, which has ",
        [] { LocalAddress("nowhere"); });
  fails("127.0.0.1, ", [] { LocalAddress("nowhere"); });
  fails(", lo", [] { LocalAddress("nowhere"); });
  const Connected ends;
  char byte = 0;
  fails("no answer in time", [&] { ends.far.Read({&byte, 1}, Deadline::In(0.05)); });
  std::atomic<bool> stop = true;
  fails("interrupted", [&] { ends.far.Read({&byte, 1}, Deadline::In(20, &stop)); });
  const Socket gone = Connected().near;
  fails(kClosed, [&] { gone.Read({&byte, 1}, Deadline::In(20)); });
}

TEST(NetworkAddress, IsWrittenAsItIsTyped) {
  EXPECT_EQ(Resolve("10.0.0.2", 29400).front().text(), "10.0.0.2:29400");
  EXPECT_EQ(Resolve("::1", 80).front().text(), "[::1]:80");
  const Address other = Resolve("10.0.0.2", 80).front().WithPort(443);
  EXPECT_EQ(other.port(), 443);
  EXPECT_TRUE(other.SameHost(Resolve("10.0.0.2", 80).front()));
  EXPECT_FALSE(other.SameHost(Resolve("10.0.0.3", 443).front()));
  EXPECT_EQ(InterfaceOf(LocalAddress("127.0.0.1")), "lo");
  EXPECT_EQ(InterfaceOf(Resolve("192.0.2.1", 80).front()), "");
}

TEST(NetworkDeadline, IsTheEarlierOfTwo) {
  std::atomic<bool> stop = false;
  const Deadline far = Deadline::In(100, &stop);
  EXPECT_NEAR(far.left_s(), 100, 10);
  EXPECT_NEAR(far.AtMost(50).left_s(), 50, 10);
  EXPECT_NEAR(far.AtMost(200).left_s(), 100, 10);
  EXPECT_FALSE(far.over());
  EXPECT_TRUE(far.AtMost(-1).over());
  EXPECT_FALSE(far.AtMost(-1).stopped());
  stop = true;
  EXPECT_TRUE(far.AtMost(50).stopped()) << "who waits less is stopped by the same";
  EXPECT_TRUE(far.over());
}

// ---- The probe, over the loopback.

struct Outcome {
  std::optional<NetworkProfile> profile;
  std::string error;                // of the coordinator
  std::vector<std::string> agents;  // what each ended with: empty, why it ended early, or its error
};

class NetworkProbeTest : public testing::Test {
 protected:
  // A port of the loopback that is free now.
  NetworkProbeTest() {
    const Socket socket = Socket::Listen(LocalAddress("127.0.0.1"));
    options_.master = socket.local();
    options_.hosts = 3;
    options_.name = "n0";
    options_.settings = {0.1, 2};
    options_.token = kToken;
    options_.join_s = 5;
    options_.deadline = Deadline::In(60, &stop_);
  }

  AgentOptions AgentOf(int rank) const {
    AgentOptions agent;
    agent.rank = rank;
    agent.of = options_.hosts;
    agent.name = fmt::format("n{}", rank);
    agent.master = options_.master;
    agent.token = kToken;
    agent.join_s = 5;
    agent.deadline = Deadline::In(60);
    return agent;
  }

  Outcome Run(const std::vector<AgentOptions>& agents,
              const std::function<void(const ProbeProgress&)>& progress = {}) {
    Outcome outcome;
    outcome.agents.resize(agents.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < agents.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          outcome.agents[i] = RunAgent(agents[i]);
        } catch (const NetworkError& e) {
          outcome.agents[i] = e.what();
        }
      });
    }
    try {
      outcome.profile = RunProbe(options_, {}, {progress, {}, {}});
    } catch (const NetworkError& e) {
      outcome.error = e.what();
    }
    for (std::thread& thread : threads) thread.join();
    return outcome;
  }

  std::atomic<bool> stop_ = false;
  ProbeOptions options_;
};

TEST_F(NetworkProbeTest, MeasuresAllThatIsPlanned) {
  options_.names = {"a", "b", "b+"};
  std::size_t last = 0;
  const Outcome outcome = Run({AgentOf(1), AgentOf(2)}, [&](const ProbeProgress& p) {
    EXPECT_GE(p.done, last);
    EXPECT_LE(p.left_s, ExpectedSeconds(MakeSchedule(3), 0, options_.settings));
    last = p.done;
  });
  EXPECT_EQ(outcome.agents, (std::vector<std::string>{"", ""}));
  ASSERT_TRUE(outcome.profile) << outcome.error;
  const NetworkProfile& profile = *outcome.profile;
  EXPECT_TRUE(profile.complete()) << profile.problem;
  EXPECT_EQ(profile.rows.size(), 3U + 4 * 6 + 6 + 6);
  for (const NetworkRow& row : profile.rows) {
    EXPECT_EQ(row.problem, "");
    ASSERT_TRUE(row.tcp);
    EXPECT_GT(row.tcp->segments, 0);
    EXPECT_GT(row.tcp->min_rtt_s, 0);
    EXPECT_NE(row.tcp->congestion_control, "");
    if (row.kind == Kind::kLatency) {
      EXPECT_GT(*row.rtt_p10_s, 0);
      EXPECT_LE(*row.rtt_p10_s, *row.rtt_median_s);
      EXPECT_LT(*row.rtt_median_s, 0.1);
    } else {
      EXPECT_GT(*row.bytes_per_s, 1e6);
    }
  }
  EXPECT_EQ(profile.hosts[2].name, "b-");
  EXPECT_EQ(profile.hosts[0].facts.at("interface"), "lo");
  // As a file, and back.
  NetworkProfile kept = profile;
  kept.version = "0.2.0";
  kept.started = "now";
  kept.rows.back().problem = "a \"problem\"\n";
  kept.rows.back().bytes_per_s.reset();
  kept.rows.back().tcp.reset();
  const std::string text = FormatNetworkProfile(kept);
  EXPECT_EQ(FormatNetworkProfile(ParseNetworkProfile(text, "network.json")), text);
}

TEST(NetworkProfileFile, WhatNoProbeCanHaveWrittenIsRefused) {
  NetworkProfile profile;
  profile.version = "0.2.0";
  profile.started = "now";
  profile.planned = 1;
  for (const char* name : {"a", "b"}) {
    NetworkHost host;
    host.name = name;
    host.address = "10.0.0.1";
    profile.hosts.push_back(host);
  }
  NetworkRow row;
  row.kind = Kind::kLatency;
  row.from = 0;
  row.to = 1;
  row.flows = 1;
  row.rtt_median_s = 1e-3;
  profile.rows = {row};
  const std::string text = FormatNetworkProfile(profile);
  ASSERT_EQ(FormatNetworkProfile(ParseNetworkProfile(text, "n.json")), text);
  const auto refused = [&](const std::string& what, const std::string& by, const std::string& why) {
    std::string changed = text;
    const std::size_t at = changed.rfind(what);
    ASSERT_NE(at, std::string::npos) << what << " in\n" << text;
    changed.replace(at, what.size(), by);
    const auto error = ErrorOf([&] { ParseNetworkProfile(changed, "n.json"); });
    EXPECT_TRUE(Says(error, "n.json:"));
    EXPECT_TRUE(Says(error, why)) << why;
  };
  refused(R"("latency")", R"("speed")", "kind: 'speed' is not one of them");
  refused(R"("to":"b")", R"("to":"c")", "to: 'c' is none of the hosts");
  refused(R"("to":"b")", R"("to":"a")", "to: 'a' is where it comes from");
  refused(R"("name":"b")", R"("name":"a")", "name: 'a' is the name of two hosts");
  refused(R"("name":"b")", R"("name":"b+")", "contains +, which joins host names");
  profile.rows = {row, row};
  EXPECT_TRUE(Says(ErrorOf([&] { ParseNetworkProfile(FormatNetworkProfile(profile), "n.json"); }),
                   "to: 'b' is there twice"));
  profile.rows.clear();
  profile.hosts.pop_back();
  EXPECT_TRUE(Says(ErrorOf([&] { ParseNetworkProfile(FormatNetworkProfile(profile), "n.json"); }),
                   "is no number of hosts to measure between; allowed: 2 to"));
}

// A rate is that of all connections together: what these sent, by the segments that TCP counts,
// takes about as long at that rate as one measurement, and four times as long at that of one of
// four.
TEST_F(NetworkProbeTest, ARateIsThatOfAllConnections) {
  options_.hosts = 2;
  options_.settings = {0.1, 4};
  const Outcome outcome = Run({AgentOf(1)});
  ASSERT_TRUE(outcome.profile) << outcome.error;
  if (!outcome.profile->complete()) GTEST_SKIP() << "the machine was too busy to measure all";
  std::map<Kind, double> least_s;
  for (const NetworkRow& row : outcome.profile->rows) {
    if (row.kind == Kind::kLatency || row.kind == Kind::kPaced) continue;
    ASSERT_TRUE(row.tcp && row.bytes_per_s) << row.problem;
    const double bytes = static_cast<double>(row.tcp->segments) * row.tcp->segment_bytes;
    const auto [least, first] = least_s.try_emplace(row.kind, bytes / *row.bytes_per_s);
    if (!first) least->second = std::min(least->second, bytes / *row.bytes_per_s);
  }
  EXPECT_EQ(least_s.size(), 3U) << "one connection, several, and both ways";
  for (const auto& [kind, seconds] : least_s) {
    EXPECT_LT(seconds, 2.5 * options_.settings.seconds) << static_cast<int>(kind);
  }
}

// The paced connections carry no more than their share of what was measured before.
TEST_F(NetworkProbeTest, PacedFlowsKeepBelowTheRate) {
  options_.hosts = 2;
  const Outcome outcome = Run({AgentOf(1)});
  ASSERT_TRUE(outcome.profile && outcome.profile->complete());
  const MeasuredRows rows(*outcome.profile);
  const double paced = rows.Rate(Kind::kPaced, 0, 1).value();
  EXPECT_LT(paced, 0.9 * rows.Best(0, 1).value());
}

// The host that leads needs no name of its own where there is a list, and has its own without.
TEST_F(NetworkProbeTest, TheFirstOfTheListIsTheOneThatLeads) {
  options_.hosts = 2;
  for (const bool listed : {true, false}) {
    options_.names = listed ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{};
    options_.name = listed ? "" : "n0";
    std::optional<ProbeProgress> first;
    const Outcome outcome = Run({AgentOf(1)}, [&](const ProbeProgress& p) {
      if (!first) first = p;
      if (p.done == 1) stop_ = true;
    });
    ASSERT_TRUE(outcome.profile) << outcome.error;
    const std::vector<NetworkHost>& hosts = outcome.profile->hosts;
    EXPECT_EQ(hosts[0].name, listed ? "a" : "n0");
    EXPECT_EQ(hosts[1].name, listed ? "b" : "n1");
    EXPECT_EQ(hosts[0].address, "127.0.0.1");
    ASSERT_TRUE(first);
    EXPECT_EQ(first->done, 0U);
    EXPECT_EQ(first->steps, 7U);
    EXPECT_EQ(first->what, listed ? "latency, a to b" : "latency, n0 to n1");
    EXPECT_NEAR(first->left_s, ExpectedSeconds(MakeSchedule(2), 0, options_.settings), 1e-12);
    EXPECT_EQ(outcome.profile->planned, 1 + 4 + 2 + 2);
    stop_ = false;
  }
}

TEST_F(NetworkProbeTest, AHostThatNeverComesIsNamed) {
  options_.join_s = 0.5;
  const auto start = Clock::now();
  const Outcome outcome = Run({AgentOf(2)});
  EXPECT_LT(Clock::now() - start, SecondsToClock(5));
  EXPECT_EQ(outcome.error, "1 of 3 hosts did not come: rank 1: did not connect in time");
  // Who came is told why it ended, and does not wait for another probe.
  EXPECT_NE(outcome.agents[0].find("has ended: " + outcome.error), std::string::npos)
      << outcome.agents[0];
}

TEST_F(NetworkProbeTest, TheLastHostOfTheListIsMissedByItsName) {
  options_.join_s = 0.5;
  options_.names = {"a", "b", "c"};
  EXPECT_EQ(Run({AgentOf(1)}).error, "1 of 3 hosts did not come: c: did not connect in time");
}

// Who joins while rank 0 has other work waits for longer than for a rank 0 that is not there, and
// what it may take in all begins behind that.
TEST_F(NetworkProbeTest, WhoIsAskedToComeLaterWaits) {
  options_.hosts = 2;
  AgentOptions agent = AgentOf(1);
  agent.join_s = 1;
  const Clock::time_point until = agent.deadline.until;
  std::vector<std::string> said;
  agent.waits = [&](const std::string& why, bool is_there) {
    said.push_back((is_there ? "there: " : "not there: ") + why);
  };
  std::string problem;
  std::optional<HoldOff> held;
  held.emplace(options_, "paints the shed");
  std::thread joining([&] {
    try {
      EXPECT_EQ(Join(&agent, nullptr).peers.size(), 2U);
    } catch (const NetworkError& e) {
      problem = e.what();
    }
  });
  std::this_thread::sleep_for(SecondsToClock(2.5));
  held.reset();
  const Outcome outcome = Run({});
  joining.join();
  EXPECT_EQ(problem, "");
  EXPECT_EQ(outcome.error.find("did not come"), std::string::npos) << outcome.error;
  EXPECT_EQ(said, std::vector<std::string>{"there: paints the shed"});
  EXPECT_GT(ClockToSeconds(agent.deadline.until - until), 1.5);
}

TEST_F(NetworkProbeTest, WhoWaitsForNobodySaysSoOnceAndEnds) {
  AgentOptions agent = AgentOf(1);
  agent.join_s = 2;
  std::vector<std::string> said;
  agent.waits = [&](const std::string& why, bool is_there) {
    EXPECT_FALSE(is_there);
    said.push_back(why);
  };
  const auto start = Clock::now();
  const std::string error = ErrorTextOf([&] { Join(&agent, nullptr); });
  EXPECT_LT(Clock::now() - start, SecondsToClock(4));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].rfind("cannot reach " + agent.master.text(), 0), 0U) << said[0];
  EXPECT_EQ(error, said[0] + "; is rank 0 started, and its port open?");
}

TEST_F(NetworkProbeTest, AWrongTokenIsRefusedAndSaid) {
  options_.join_s = 0.5;
  AgentOptions wrong = AgentOf(1);
  wrong.token = "another token..";
  const Outcome outcome = Run({wrong, AgentOf(2)});
  EXPECT_NE(outcome.error.find("rank 1 (127.0.0.1 showed another token)"), std::string::npos)
      << outcome.error;
  EXPECT_NE(outcome.agents[0].find("refuses this host: showed another token"), std::string::npos)
      << outcome.agents[0];
}

TEST_F(NetworkProbeTest, TwoOfOneRankOrAnotherNumberOfHostsAreRefused) {
  options_.join_s = 1;
  AgentOptions other = AgentOf(2);
  other.of = 4;
  const Outcome outcome = Run({AgentOf(1), AgentOf(1), other});
  EXPECT_NE(outcome.error.find("is a second rank 1"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("sent of '4', which is not from 3 to 3"), std::string::npos)
      << outcome.error;
}

TEST_F(NetworkProbeTest, AHostThatGoesAwayEndsWhatItHadPartIn) {
  std::atomic<bool> leave = false;
  AgentOptions leaving = AgentOf(2);
  leaving.deadline.stop = &leave;
  const Outcome outcome = Run({AgentOf(1), leaving}, [&](const ProbeProgress& p) {
    if (p.done == 9) leave = true;  // in the second round
  });
  ASSERT_TRUE(outcome.profile) << outcome.error;
  const NetworkProfile& profile = *outcome.profile;
  EXPECT_EQ(profile.problem, "n2 is gone: the connection was closed");
  EXPECT_FALSE(profile.complete());
  EXPECT_EQ(static_cast<int>(profile.rows.size()), profile.planned);
  const MeasuredRows rows(profile);
  EXPECT_TRUE(rows.Best(0, 1) && rows.Best(1, 0));
  EXPECT_FALSE(rows.Rate(Kind::kIncast, 2, 0));
  EXPECT_TRUE(rows.Rate(Kind::kIncast, 1, 0));
  EXPECT_EQ(outcome.agents[0], profile.problem);
}

TEST_F(NetworkProbeTest, AnInterruptKeepsWhatWasMeasured) {
  const auto start = Clock::now();
  const Outcome outcome = Run({AgentOf(1), AgentOf(2)}, [&](const ProbeProgress& p) {
    if (p.done == 5) stop_ = true;
  });
  EXPECT_LT(Clock::now() - start, SecondsToClock(30));
  ASSERT_TRUE(outcome.profile) << outcome.error;
  EXPECT_EQ(outcome.profile->problem, "interrupted");
  EXPECT_FALSE(outcome.profile->complete());
  EXPECT_GE(outcome.profile->rows.size(), 5U);
  EXPECT_EQ(outcome.agents, (std::vector<std::string>{"interrupted", "interrupted"}));
}

TEST_F(NetworkProbeTest, TheTimeLimitEndsIt) {
  options_.settings.seconds = 0.5;
  options_.deadline = Deadline::In(1.5);
  const auto start = Clock::now();
  const Outcome outcome = Run({AgentOf(1), AgentOf(2)});
  EXPECT_LT(Clock::now() - start, SecondsToClock(20));
  ASSERT_TRUE(outcome.profile) << outcome.error;
  EXPECT_FALSE(outcome.profile->complete());
  EXPECT_NE(outcome.profile->problem, "");
}

// ---- Hosts.

TEST(NetworkAddress, AHostReachesItselfByAllOfItsOwn) {
  EXPECT_TRUE(Resolve("127.0.0.1", 1).front().loopback());
  EXPECT_TRUE(Resolve("127.3.2.1", 1).front().loopback());
  EXPECT_TRUE(Resolve("::1", 1).front().loopback());
  EXPECT_FALSE(Resolve("10.127.0.1", 1).front().loopback());
}

TEST(NetworkHost, TellsItsBuffersAsTheSystemDoes) {
  const auto facts = HostFacts(LocalAddress("127.0.0.1"));
  const auto system = [](const std::string& name) {
    std::ifstream file("/proc/sys/net/ipv4/" + name);
    std::string line;
    std::getline(file, line);
    std::replace(line.begin(), line.end(), '\t', ' ');
    return line;
  };
  ASSERT_NE(system("tcp_rmem"), system("tcp_wmem")) << "cannot be told apart here";
  EXPECT_EQ(facts.at("receive_buffer"), system("tcp_rmem"));
  EXPECT_EQ(facts.at("send_buffer"), system("tcp_wmem"));
  EXPECT_EQ(facts.at("congestion_control"), system("tcp_congestion_control"));
}

// The loopback has a largest packet and no wire, whose speed it could state.
TEST(NetworkHost, TellsOfItsInterface) {
  const auto facts = HostFacts(LocalAddress("127.0.0.1"));
  EXPECT_EQ(facts.at("interface"), "lo");
  std::ifstream file("/sys/class/net/lo/mtu");
  std::string mtu;
  if (file >> mtu) {
    EXPECT_EQ(facts.at("mtu"), mtu);
  }
  EXPECT_EQ(facts.count("speed"), 0U);
  EXPECT_EQ(facts.at("cores"), std::to_string(std::thread::hardware_concurrency()));
  std::ifstream release("/proc/sys/kernel/osrelease");
  std::string kernel;
  if (release >> kernel) {
    EXPECT_EQ(facts.at("kernel"), kernel);
  }
  EXPECT_EQ(HostFacts(Resolve("192.0.2.1", 1).front()).count("interface"), 0U)
      << "of no interface of this host";
}

// ---- Whoever else reaches the port.

TEST(NetworkDoor, NoiseHoldsNobodyUp) {
  Door door(LocalAddress("127.0.0.1"), kToken);
  const Deadline deadline = Deadline::In(20);
  std::vector<Socket> silent;  // they never say who they are
  for (int i = 0; i < 40; ++i) {
    silent.push_back(Socket::Connect(door.address(), nullptr, deadline));
  }
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    const Socket noisy = Socket::Connect(door.address(), nullptr, deadline);
    std::string noise(static_cast<std::size_t>(i) * 400, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    try {
      noisy.Send(noise, deadline);
    } catch (const NetworkError&) {
      // It was shut out before it had said all.
    }
  }
  const LineSocket line(Socket::Connect(door.address(), nullptr, deadline));
  line.Send(Message(kJoin).Set("stepcast", kProtocol).Set("token", kToken).Line(), deadline);
  const auto start = Clock::now();
  EXPECT_EQ(door.TakeJoin(deadline).hello.verb(), kJoin);
  EXPECT_LT(Clock::now() - start, SecondsToClock(2));
  const std::vector<std::string> refusals = door.refusals();
  EXPECT_FALSE(refusals.empty());
  EXPECT_LE(refusals.size(), 20U);
  EXPECT_EQ(std::set<std::string>(refusals.begin(), refusals.end()).size(), refusals.size())
      << "each is told once";
  // A line without an end is as long as a line may be, and no longer.
  const Socket endless = Socket::Connect(door.address(), nullptr, deadline);
  EXPECT_THROW(
      {
        const std::string text(1 << 16, 'x');
        while (!deadline.over()) endless.Send(text, deadline);
      },
      NetworkError);
  EXPECT_LT(Clock::now() - start, SecondsToClock(10));
}

TEST(NetworkDoor, OnlyHostsOfTheListComeInAndTheSilentMustGo) {
  Door door(LocalAddress("127.0.0.1"), kToken);
  const Deadline deadline = Deadline::In(10);
  const Socket silent = Socket::Connect(door.address(), nullptr, deadline);
  LineSocket answer(Socket::Connect(door.address(), nullptr, deadline));
  std::this_thread::sleep_for(SecondsToClock(0.3));  // they are in
  door.AdmitOnly({"10.0.0.7"});
  LineSocket stranger(Socket::Connect(door.address(), nullptr, deadline));
  EXPECT_EQ(Message::Parse(stranger.Read(deadline)).Text("why"), "is none of the hosts");
  EXPECT_EQ(Message::Parse(answer.Read(deadline)).Text("why"), "did not say who it is");
}

// What a door answers to a first line; the connection ends with the answer.
Message AnswerOfDoor(const Door& door, const Message& hello) {
  const Deadline deadline = Deadline::In(10);
  LineSocket line(Socket::Connect(door.address(), nullptr, deadline));
  line.Send(hello.Line(), deadline);
  return Message::Parse(line.Read(deadline));
}

Message HelloOfData(int step, int from, int flow) {
  Message hello = Membership::Hello(kData, kToken);
  return hello.Set("step", step).Set("from", from).Set("flow", flow);
}

// Connections of a measurement wait until they are taken, or until it is over.
TEST(NetworkDoor, ForgetsMeasurementsThatAreOver) {
  Door door(LocalAddress("127.0.0.1"), kToken);
  // One after the other is let in.
  for (const int step : {3, 5, 6}) {
    EXPECT_EQ(AnswerOfDoor(door, HelloOfData(step, 1, 0)).verb(), kWelcome);
  }
  EXPECT_EQ(AnswerOfDoor(door, HelloOfData(5, 2, 7)).verb(), kWelcome);
  door.Forget(5);
  const auto taken = [&](int step, int from, int flow, double within_s) {
    return ErrorTextOf([&] { door.TakeData(step, from, flow, Deadline::In(within_s)); });
  };
  EXPECT_EQ(taken(3, 1, 0, 0.1), "did not connect in time");
  EXPECT_EQ(taken(5, 1, 0, 5), "");
  EXPECT_EQ(taken(5, 1, 0, 0.1), "did not connect in time") << "it was taken";
  EXPECT_EQ(taken(5, 2, 0, 0.1), "did not connect in time");
  EXPECT_EQ(taken(5, 2, 7, 5), "");
  EXPECT_EQ(taken(6, 1, 0, 5), "");
  EXPECT_EQ(AnswerOfDoor(door, HelloOfData(4, 1, 0)).Text("why"),
            "came to a measurement that is over");
  EXPECT_EQ(AnswerOfDoor(door, HelloOfData(5, 1, 0)).verb(), kWelcome);
}

TEST(NetworkDoor, SaysWhyItLetsNobodyIn) {
  const Door door(LocalAddress("127.0.0.1"), kToken);
  std::vector<std::string> said;
  const auto refused = [&](const Message& hello, const std::string& why) {
    const Message answer = AnswerOfDoor(door, hello);
    EXPECT_EQ(answer.verb(), kRefused);
    EXPECT_EQ(answer.Text("why"), why);
    said.push_back("127.0.0.1 " + why);
  };
  refused(Message(kJoin).Set("stepcast", kProtocol), "sent no token");
  refused(Membership::Hello(kJoin, "another"), "showed another token");
  refused(Membership::Hello(kJoin, kToken).Set("stepcast", kProtocol + 1),
          "is a stepcast of another version");
  refused(Membership::Hello("hello", kToken), "sent what is no message");
  refused(HelloOfData(-1, 0, 0), "sent step '-1', which is not from 0 to 1000000");
  refused(HelloOfData(0, 256, 0), "sent from '256', which is not from 0 to 255");
  refused(HelloOfData(0, 0, 64), "sent flow '64', which is not from 0 to 63");
  EXPECT_EQ(door.refusals(), said);
}

// Joins as a host does and then answers what `lie` makes of each message.
std::string Lie(const AgentOptions& options, const std::function<std::string(int line)>& lie) {
  const Deadline deadline = Deadline::In(20);
  std::optional<Socket> socket;
  while (!socket) {
    try {
      socket = Socket::Connect(options.master, nullptr, deadline);
    } catch (const NetworkError&) {
      std::this_thread::sleep_for(SecondsToClock(0.05));
    }
  }
  LineSocket line(std::move(*socket));
  Message join(kJoin);
  join.Set("stepcast", kProtocol).Set("token", options.token).Set("rank", options.rank);
  line.Send(join.Set("of", options.of).Set("name", "liar").Set("port", 9).Line(), deadline);
  try {
    for (int i = 0; i < 10000; ++i) {
      const std::string answer = lie(i);
      if (!answer.empty()) line.Send(answer, deadline);
      if (i < 100) line.Read(deadline);
    }
  } catch (const NetworkError& e) {
    return e.what();
  }
  return "";
}

TEST_F(NetworkProbeTest, AHostThatLiesIsGoneAndNoMore) {
  const std::vector<std::function<std::string(int)>> lies = {
      [](int) { return std::string("nonsense"); },
      [](int) { return std::string(1 << 20, 'x'); },
      // As soon as it is asked: before go, and for paths that nobody asked for.
      [](int i) { return i < 4 ? std::string() : Message("ready").Line(); },
      [](int i) {
        return i < 4 ? std::string() : Message("got").Set("peer", 7777).Set("rate", "1e400").Line();
      },
  };
  for (const auto& lie : lies) {
    options_.hosts = 3;
    std::thread liar([&] { Lie(AgentOf(2), lie); });
    const auto start = Clock::now();
    const Outcome outcome = Run({AgentOf(1)});
    liar.join();
    EXPECT_LT(Clock::now() - start, SecondsToClock(40));
    ASSERT_TRUE(outcome.profile) << outcome.error;
    EXPECT_EQ(outcome.profile->problem.find("liar is gone: "), 0U) << outcome.profile->problem;
    EXPECT_TRUE(MeasuredRows(*outcome.profile).Best(0, 1));
  }
}

// ---- What hosts are asked.

// Stands between a host and the coordinator, and changes what the host tells of what it measured.
class Between {
 public:
  struct Asked {
    Step step;
    std::vector<Task> tasks;
  };

  // `change` alters what is told in a step of the kind.
  Between(Address master, std::function<void(Kind kind, Message* told)> change)
      : master_(std::move(master)),
        change_(std::move(change)),
        listener_(Socket::Listen(LocalAddress("127.0.0.1"))),
        thread_([this] { Relay(); }) {}
  ~Between() { thread_.join(); }
  Between(const Between&) = delete;
  Between& operator=(const Between&) = delete;

  Address address() const { return listener_.local(); }
  // What the host was to do, once it has ended.
  const std::vector<Asked>& asked() const { return asked_; }

 private:
  void Relay() {
    try {
      listener_.Wait(POLLIN, deadline_);
      LineSocket host(listener_.Accept());
      LineSocket master(Reach());
      while (true) {
        while (const auto line = host.TryRead()) {
          Message told = Message::Parse(*line);
          if (!asked_.empty()) change_(asked_.back().step.kind, &told);
          master.Send(told.Line(), deadline_);
        }
        while (const auto line = master.TryRead()) {
          Note(Message::Parse(*line));
          host.Send(*line, deadline_);
        }
        pollfd either[] = {{host.socket().fd(), POLLIN, 0}, {master.socket().fd(), POLLIN, 0}};
        poll(either, 2, 1000);
      }
    } catch (const NetworkError&) {
      // One of the two has gone, as both do at the end.
    }
  }
  Socket Reach() const {
    while (true) {
      try {
        return Socket::Connect(master_, nullptr, deadline_);
      } catch (const NetworkError&) {
        if (deadline_.over()) throw;
        std::this_thread::sleep_for(SecondsToClock(0.05));
      }
    }
  }
  void Note(const Message& message) {
    if (message.verb() == "step") asked_.push_back({ReadStep(message), {}});
    if (message.verb() == "send" || message.verb() == "receive") {
      asked_.back().tasks.push_back(ReadTask(message, 3));
    }
  }

  Deadline deadline_ = Deadline::In(60);
  Address master_;
  std::function<void(Kind kind, Message* told)> change_;
  std::vector<Asked> asked_;
  Socket listener_;
  std::thread thread_;
};

// The farthest path of a step says how long its start is left out: 17 round trips. A paced flow
// sends its share of four fifths of the best rate of the path, whichever kind of flows had it.
TEST_F(NetworkProbeTest, StepsFollowFromWhatWasToldBefore) {
  const auto told = [](double of_one, double of_several) {
    return [=](Kind kind, Message* message) {
      if (message->verb() == "sent" && kind == Kind::kLatency) message->Set("median", 0.01);
      if (message->verb() != "got") return;
      if (kind == Kind::kOneFlow) message->Set("rate", of_one);
      if (kind == Kind::kSeveralFlows) message->Set("rate", of_several);
    };
  };
  AgentOptions first = AgentOf(1);
  AgentOptions second = AgentOf(2);
  Between at_first(options_.master, told(80e6, 40e6));
  Between at_second(options_.master, told(20e6, 60e6));
  first.master = at_first.address();
  second.master = at_second.address();
  const Outcome outcome = Run({first, second});
  ASSERT_TRUE(outcome.profile) << outcome.error;
  // That all is measured is MeasuresAllThatIsPlanned's to judge; what is not, is not followed up.
  if (!outcome.profile->complete()) GTEST_SKIP() << "the machine was too busy to measure all";
  int far = 0;
  int paced = 0;
  for (const Between::Asked& asked : at_first.asked()) {
    if (asked.step.kind == Kind::kLatency) continue;
    for (const Task& task : asked.tasks) {
      if (task.peer != 2) continue;
      ++far;
      EXPECT_NEAR(asked.step.warm_s, 0.17, 1e-12) << static_cast<int>(asked.step.kind);
      if (asked.step.kind != Kind::kPaced) continue;
      ++paced;
      ASSERT_EQ(asked.step.flows, 2);
      EXPECT_NEAR(task.pace, task.sends ? 24e6 : 32e6, 1);
    }
  }
  EXPECT_EQ(paced, 2);
  EXPECT_EQ(far, 4 + 2 + 2 + 2 + 2) << "alone, both ways, paced, with another peer, and incast";
}

// Round trips to an end whose echoes are late where `is_late` says so of their number.
RoundTrips TripsWithLateEchoes(double seconds, double late_s,
                               const std::function<bool(int)>& is_late) {
  const Deadline deadline = Deadline::In(20);
  Connected ends;
  std::thread echo([&] {
    char bytes[64];
    try {
      for (int i = 0; true; ++i) {
        ends.far.Read(bytes, deadline);
        if (is_late(i)) std::this_thread::sleep_for(SecondsToClock(late_s));
        ends.far.Send(bytes, deadline);
      }
    } catch (const NetworkError&) {
      // The other end has gone.
    }
  });
  const RoundTrips trips = Ping(ends.near, seconds, deadline);
  ends.near.Close();
  echo.join();
  return trips;
}

// Of echoes some of which are late.
TEST(NetworkTraffic, RoundTripsAreTheMedianAndATenth) {
  for (const int late_of_three : {1, 2}) {
    const RoundTrips trips =
        TripsWithLateEchoes(0.9, 0.03, [&](int i) { return i % 3 < late_of_three; });
    EXPECT_LT(trips.p10_s, 0.03);
    if (late_of_three == 1) {
      EXPECT_LT(trips.median_s, 0.03);
    } else {
      EXPECT_GE(trips.median_s, 0.03);
    }
  }
}

// One quick answer among many late ones is the least of all, and no tenth of them.
TEST(NetworkTraffic, ATenthIsNotTheLeast) {
  EXPECT_GE(TripsWithLateEchoes(0.6, 0.02, [](int i) { return i != 5; }).p10_s, 0.02);
}

// ---- Findings.

// A profile of equal links: 100 MB/s, 1 ms, nothing lost.
NetworkProfile Equal(int hosts) {
  NetworkProfile profile;
  for (int i = 0; i < hosts; ++i) profile.hosts.push_back({fmt::format("h{}", i), "", {}});
  for (const ProbeStep& step : MakeSchedule(hosts)) {
    for (const Edge& edge : step.edges) {
      NetworkRow row;
      row.kind = step.kind;
      row.from = edge.from;
      row.to = edge.to;
      if (step.kind == Kind::kLatency) {
        row.rtt_median_s = 1e-3;
      } else {
        row.bytes_per_s = step.kind == Kind::kIncast     ? 100e6 / (hosts - 1)
                          : step.kind == Kind::kTwoPeers ? 50e6
                                                         : 100e6;
      }
      row.tcp = TcpFacts();
      row.tcp->segments = 100'000;
      profile.rows.push_back(row);
    }
  }
  profile.planned = static_cast<int>(profile.rows.size());
  return profile;
}

template <class Change>
NetworkProfile Changed(NetworkProfile profile, const Change& change) {
  for (NetworkRow& row : profile.rows) change(&row);
  return profile;
}

std::set<std::string> Names(const NetworkProfile& profile) {
  std::set<std::string> names;
  for (const Finding& f : Summarise(profile).findings) {
    names.insert(fmt::format("{} {}{}", kFindingNames[static_cast<int>(f.kind)], f.host,
                             f.peer < 0 ? "" : fmt::format(" {}", f.peer)));
  }
  return names;
}

using Set = std::set<std::string>;

TEST(NetworkFindings, EqualLinksHaveNone) {
  for (int hosts = 2; hosts <= 5; ++hosts) {
    const NetworkSummary summary = Summarise(Equal(hosts));
    EXPECT_TRUE(summary.findings.empty());
    EXPECT_EQ(summary.bandwidth, 100e6);
    EXPECT_EQ(summary.rtt_s, 1e-3);
    EXPECT_FALSE(summary.loss.share());
    EXPECT_FALSE(summary.flow_cap);
    if (hosts > 2) {
      EXPECT_EQ(summary.links[0].to_two, 100e6);
      EXPECT_NEAR(summary.links[0].incast.value(), 100e6, 1);
    }
  }
}

// Each is named where it is a little below four fifths of its like, and not a little above.
TEST(NetworkFindings, WhatIsSlowIsNamedAsWhatItIs) {
  for (const auto& [share, slow] : {std::pair(0.79, true), std::pair(0.81, false)}) {
    const auto names = [slow = slow](const Set& set) { return slow ? set : Set(); };
    const NetworkProfile equal = Equal(4);
    const auto scale = [&, share = share](NetworkRow* row) {
      if (row->bytes_per_s) *row->bytes_per_s *= share;
    };
    EXPECT_EQ(Names(Changed(equal,
                            [&](NetworkRow* row) {
                              if (row->from == 2 || row->to == 2) scale(row);
                            })),
              names({"slow_host 2"}));
    EXPECT_EQ(
        Names(Changed(equal,
                      [&](NetworkRow* row) {
                        const bool of_pair = std::minmax({row->from, row->to}) == std::pair(1, 3);
                        if (of_pair) scale(row);
                      })),
        names({"slow_pair 1 3"}));
    EXPECT_EQ(Names(Changed(equal,
                            [&](NetworkRow* row) {
                              if (row->from == 3 && row->to == 1) scale(row);
                            })),
              names({"asymmetric_pair 3 1"}));
    EXPECT_EQ(Names(Changed(equal,
                            [&](NetworkRow* row) {
                              if (row->from == 1 && row->to == 0 && row->kind == Kind::kOneFlow) {
                                scale(row);
                              }
                            })),
              names({"capped_flow 1 0"}));
    EXPECT_EQ(Names(Changed(equal,
                            [&](NetworkRow* row) {
                              if (row->to == 2 && row->kind == Kind::kIncast) scale(row);
                            })),
              names({"incast_collapse 2"}));
    NetworkProfile port = equal;
    port.hosts[1].facts["speed"] = fmt::format("{} Mbit/s", slow ? 1010 : 990);
    EXPECT_EQ(Names(port), names({"below_port 1"}));
  }
}

TEST(NetworkFindings, AHostThatSendsSlowlyIsNoAsymmetricPair) {
  EXPECT_EQ(Names(Changed(Equal(4),
                          [](NetworkRow* row) {
                            if (row->from == 2 && row->bytes_per_s) *row->bytes_per_s *= 0.5;
                          })),
            (Set{"slow_host 2", "asymmetric_host 2"}));
}

TEST(NetworkFindings, OfTwoHostsThePairIsNamed) {
  const NetworkProfile two = Changed(Equal(2), [](NetworkRow* row) {
    if (row->from == 1 && row->bytes_per_s) *row->bytes_per_s *= 0.5;
  });
  EXPECT_EQ(Names(two), (Set{"asymmetric_pair 1 0"}));
}

TEST(NetworkFindings, LossAndDistanceAreThoseOfTheHost) {
  const NetworkProfile profile = Changed(Equal(4), [](NetworkRow* row) {
    const bool of_three = row->from == 3 || row->to == 3;
    if (row->rtt_median_s && of_three) row->rtt_median_s = 5e-3;
    if (row->kind == Kind::kPaced) {
      row->tcp->retransmitted = of_three ? 1500 : 100;
      row->tcp->needless = of_three ? 500 : 0;
    }
  });
  EXPECT_EQ(Names(profile), (Set{"distant_host 3", "lossy_host 3"}));
  const NetworkSummary summary = Summarise(profile);
  EXPECT_NEAR(summary.links[3].loss.share().value(), 0.01, 1e-12);
  EXPECT_NEAR(summary.loss.share().value(), 0.001, 1e-12);
  EXPECT_EQ(summary.rtt_s, 1e-3);
}

TEST(NetworkFindings, ACapOfMostFlowsIsTheNetworks) {
  const auto capped = [](std::int64_t again) {
    return Changed(Equal(3), [&](NetworkRow* row) {
      if (row->kind != Kind::kOneFlow) return;
      row->bytes_per_s = 40e6;
      row->tcp->retransmitted = again;
    });
  };
  EXPECT_EQ(Summarise(capped(0)).flow_cap, 40e6);
  // Whose loss slows them have no cap.
  EXPECT_FALSE(Summarise(capped(1000)).flow_cap);
}

// Of flows that lose on the way as much as where they leave the line room, and wait in no queue.
TEST(NetworkFindings, WhatLossHoldsBackSaysNotWhatTheLineCarries) {
  const auto lossy = [](double queueing, std::int64_t lost_at_full_rate, std::int64_t lost,
                        const char* control = "cubic") {
    return Summarise(Changed(Equal(3), [&](NetworkRow* row) {
      if (row->kind == Kind::kPaced) row->tcp->retransmitted = lost;
      if (row->kind != Kind::kSeveralFlows) return;
      row->tcp->congestion_control = control;
      row->tcp->rtt_s = queueing * 1e-3;
      row->tcp->retransmitted = lost_at_full_rate;
    }));
  };
  const NetworkSummary held = lossy(1.1, 1000, 1000);
  EXPECT_TRUE(held.loss_limited);
  EXPECT_EQ(held.findings.size(), 6U);
  for (const Finding& f : held.findings) EXPECT_EQ(f.kind, FindingKind::kLossLimited);
  EXPECT_FALSE(lossy(2, 1000, 1000).loss_limited);    // they wait in a queue
  EXPECT_FALSE(lossy(1.1, 2000, 1000).loss_limited);  // a short queue overflows
  EXPECT_FALSE(lossy(1.1, 0, 0).loss_limited);
  EXPECT_FALSE(lossy(1.1, 1000, 1000, "bbr").loss_limited);
}

// A round trip of a tenth of a millisecond more is no distance, however short the others are.
TEST(NetworkFindings, NearIsNotFar) {
  const auto with = [](double rtt_s) {
    return Names(Changed(Equal(4), [&](NetworkRow* row) {
      if (row->rtt_median_s) row->rtt_median_s = row->from == 3 || row->to == 3 ? rtt_s : 5e-5;
    }));
  };
  EXPECT_EQ(with(1.5e-4), Set());
  EXPECT_EQ(with(3e-4), Set{"distant_host 3"});
}

TEST(NetworkFindings, ACapOfOneFlowIsNotTheNetworks) {
  const NetworkProfile profile = Changed(Equal(3), [](NetworkRow* row) {
    if (row->from == 1 && row->to == 0 && row->kind == Kind::kOneFlow) row->bytes_per_s = 40e6;
  });
  EXPECT_EQ(Names(profile), Set{"capped_flow 1 0"});
  EXPECT_FALSE(Summarise(profile).flow_cap);
}

// Of an even number of links the middle lies between two of them.
TEST(NetworkFindings, MostLinksAreTheMedian) {
  const double rates[] = {100e6, 100e6, 90e6, 40e6};
  const NetworkSummary summary = Summarise(Changed(Equal(4), [&](NetworkRow* row) {
    if (row->bytes_per_s) row->bytes_per_s = std::min(rates[row->from], rates[row->to]);
  }));
  EXPECT_EQ(summary.bandwidth, 95e6);
  EXPECT_EQ(summary.links[0].both_ways, 200e6);
  EXPECT_EQ(summary.links[0].one_flow, 100e6);
  EXPECT_EQ(summary.links[3].one_flow, 40e6);
}

// Host 3 is as far, or as lossy, as that many times the others.
TEST(NetworkFindings, DistanceAndLossBeginAtTwice) {
  const auto with = [](double far, double near_s, int lost) {
    return Names(Changed(Equal(4), [&](NetworkRow* row) {
      const bool of_three = row->from == 3 || row->to == 3;
      if (row->rtt_median_s) row->rtt_median_s = of_three ? far * near_s : near_s;
      if (row->kind == Kind::kPaced) row->tcp->retransmitted = of_three ? lost : 100;
    }));
  };
  EXPECT_EQ(with(1.95, 1e-3, 195), Set());
  EXPECT_EQ(with(2.05, 1e-3, 100), Set{"distant_host 3"});
  EXPECT_EQ(with(1, 1e-3, 205), Set{"lossy_host 3"});
  // A fifth of a millisecond more, where that is many times as far.
  EXPECT_EQ(with(4.9, 5e-5, 100), Set());
  EXPECT_EQ(with(5.1, 5e-5, 100), Set{"distant_host 3"});
}

// One path's flows, held back by loss where that is all; by a little, and by a little not.
TEST(NetworkFindings, LossHoldsBackWhereNothingElseDoes) {
  const auto limited = [](double queueing, std::int64_t lost_at_full_rate, std::int64_t lost,
                          double share = 1) {
    return Summarise(Changed(Equal(3), [&](NetworkRow* row) {
      if (row->from != 0 || row->to != 1) return;
      if (row->bytes_per_s) *row->bytes_per_s *= share;
      if (row->kind == Kind::kPaced) row->tcp->retransmitted = lost;
      if (row->kind != Kind::kSeveralFlows) return;
      row->tcp->rtt_s = queueing * 1e-3;
      row->tcp->retransmitted = lost_at_full_rate;
    }));
  };
  const auto is = [&](double queueing, std::int64_t lost_at_full_rate, std::int64_t lost) {
    return limited(queueing, lost_at_full_rate, lost).links[0].loss_limited;
  };
  EXPECT_TRUE(is(1.45, 1000, 1000));
  EXPECT_FALSE(is(1.55, 1000, 1000));
  EXPECT_TRUE(is(1.1, 1450, 1000));
  EXPECT_FALSE(is(1.1, 1550, 1000));
  EXPECT_TRUE(is(1.1, 690, 1000));
  EXPECT_FALSE(is(1.1, 640, 1000));
  EXPECT_TRUE(is(1.1, 11, 11)) << "one in ten thousand slows";
  EXPECT_FALSE(is(1.1, 9, 9));
  // Both ends of the path, and not the third; neither where another path of theirs does better.
  const NetworkSummary of_best = limited(1.1, 1000, 1000);
  EXPECT_TRUE(of_best.links[1].loss_limited);
  EXPECT_FALSE(of_best.links[2].loss_limited);
  const NetworkSummary of_slow = limited(1.1, 1000, 1000, 0.5);
  for (const HostLink& link : of_slow.links) EXPECT_FALSE(link.loss_limited);
  EXPECT_EQ(std::count_if(of_slow.findings.begin(), of_slow.findings.end(),
                          [](const Finding& f) { return f.kind == FindingKind::kLossLimited; }),
            1);
}

// The median of the capped ones, where more than half of all paths are.
TEST(NetworkFindings, ACapIsTheNetworksFromTheHalfOn) {
  const auto with = [](int capped, std::int64_t again) {
    int seen = 0;
    return Summarise(Changed(Equal(3),
                             [&](NetworkRow* row) {
                               if (row->kind != Kind::kOneFlow || seen == capped) return;
                               row->bytes_per_s = 10e6 * ++seen;
                               row->tcp->retransmitted = again;
                             }))
        .flow_cap;
  };
  EXPECT_FALSE(with(3, 0));
  EXPECT_EQ(with(4, 0), 25e6);
  EXPECT_EQ(with(5, 0), 30e6);
  EXPECT_EQ(with(5, 9), 30e6) << "who loses one of ten thousand is slow for that";
  EXPECT_FALSE(with(5, 11));
}

// A share of few is no number.
TEST(NetworkFindings, LossIsCountedFromTheFifthOn) {
  for (const std::int64_t lost : {4, 5}) {
    TcpFacts tcp;
    tcp.segments = 1000;
    tcp.retransmitted = lost + 2;
    tcp.needless = 2;
    LossCount count;
    count += tcp;
    EXPECT_EQ(count.share().has_value(), lost == 5);
    EXPECT_EQ(count.share().value_or(0.005), 0.005);
    count += tcp;
    EXPECT_EQ(count.share(), static_cast<double>(lost) / 1000);
  }
}

// What is measured beside what it is held against: of each kind in the order of the two.
TEST(NetworkFindings, EachSaysWhatItIsHeldAgainst) {
  const auto found = [](FindingKind kind, const NetworkProfile& profile) {
    for (const Finding& f : Summarise(profile).findings) {
      if (f.kind == kind) return std::pair(f.value, f.like);
    }
    return std::pair(0.0, 0.0);
  };
  using Pair = std::pair<double, double>;
  const auto halved = [](int hosts, const std::function<bool(const NetworkRow&)>& which) {
    return Changed(Equal(hosts), [&](NetworkRow* row) {
      if (row->bytes_per_s && which(*row)) *row->bytes_per_s *= 0.5;
    });
  };
  const NetworkProfile sends_slowly =
      halved(4, [](const NetworkRow& row) { return row.from == 2; });
  EXPECT_EQ(found(FindingKind::kSlowHost, sends_slowly), Pair(50e6, 100e6));
  EXPECT_EQ(found(FindingKind::kAsymmetricHost, sends_slowly), Pair(50e6, 100e6));
  EXPECT_EQ(found(FindingKind::kAsymmetricHost,
                  halved(4, [](const NetworkRow& row) { return row.to == 2; })),
            Pair(100e6, 50e6));
  EXPECT_EQ(found(FindingKind::kSlowPair,
                  halved(4,
                         [](const NetworkRow& row) {
                           return std::minmax({row.from, row.to}) == std::pair(1, 3);
                         })),
            Pair(50e6, 100e6));
  for (const auto& [from, to] : {std::pair(1, 3), std::pair(3, 1), std::pair(0, 1)}) {
    for (const int hosts : {2, 4}) {
      if (std::max(from, to) >= hosts) continue;
      const NetworkProfile one_way = halved(hosts, [from = from, to = to](const NetworkRow& row) {
        return row.from == from && row.to == to;
      });
      EXPECT_EQ(found(FindingKind::kAsymmetricPair, one_way), Pair(50e6, 100e6));
      EXPECT_EQ(Names(one_way).count(fmt::format("asymmetric_pair {} {}", from, to)), 1U);
    }
  }
  EXPECT_EQ(found(FindingKind::kCappedFlow,
                  halved(4, [](const NetworkRow& row) { return row.kind == Kind::kOneFlow; })),
            Pair(50e6, 100e6));
  const auto [sum, one] = found(FindingKind::kIncastCollapse, halved(4, [](const NetworkRow& row) {
                                  return row.kind == Kind::kIncast && row.to == 2;
                                }));
  EXPECT_NEAR(sum, 50e6, 1);
  EXPECT_EQ(one, 100e6);
}

// A port that a host exceeds one way states nothing; two that differ in their packets are told.
TEST(NetworkFindings, PortsAreHeldAgainstWhatTheyCarry) {
  NetworkProfile profile = Changed(Equal(3), [](NetworkRow* row) {
    if (row->bytes_per_s && row->to == 1) *row->bytes_per_s *= 0.6;
  });
  for (const auto& [speed, below] :
       {std::pair("700 Mbit/s", 0U), std::pair("900 Mbit/s", 1U), std::pair("fast", 0U)}) {
    profile.hosts[1].facts["speed"] = speed;
    EXPECT_EQ(Names(profile).count("below_port 1"), below) << speed;
  }
  for (NetworkHost& host : profile.hosts) host.facts["mtu"] = "9000";
  EXPECT_EQ(Names(profile).count("different_mtu 0"), 0U);
  profile.hosts[2].facts["mtu"] = "1500";
  EXPECT_EQ(Names(profile).count("different_mtu 0"), 1U);
}

// A sum to which one of the peers gave nothing is none, and so is a row that has a problem.
TEST(NetworkFindings, ASumHasAllItsParts) {
  NetworkProfile profile = Equal(4);
  for (NetworkRow& row : profile.rows) {
    if (row.kind == Kind::kIncast && row.to == 2 && row.from == 1) row.problem = "lost";
    if (row.kind == Kind::kTwoPeers && row.from == 3 && row.to == 1) row.problem = "lost";
  }
  const NetworkSummary summary = Summarise(profile);
  for (std::size_t i = 0; i < summary.links.size(); ++i) {
    EXPECT_EQ(summary.links[i].incast.has_value(), i != 2) << i;
    EXPECT_EQ(summary.links[i].to_two.has_value(), i != 3) << i;
  }
  const MeasuredRows rows(profile);
  EXPECT_EQ(rows.Find(Kind::kIncast, 1, 2), nullptr);
  EXPECT_NE(rows.Find(Kind::kIncast, 2, 1), nullptr);
  EXPECT_EQ(rows.RoundTrip(3, 1), 1e-3) << "measured from the other end";
}

TEST(NetworkProfileFile, EveryNumberComesBack) {
  NetworkProfile profile = Equal(2);
  profile.version = "0.2.0";
  profile.started = "now";
  profile.settings["time"] = "2 s";
  for (NetworkHost& host : profile.hosts) {
    host.address = "10.0.0.1";
    host.facts["mtu"] = "9000";
  }
  for (NetworkRow& any : profile.rows) any.tcp->congestion_control = "cubic";
  NetworkRow& row = profile.rows.front();
  row.flows = 3;
  row.rtt_p10_s = 5e-4;
  row.tcp = TcpFacts{100, 20, 3, 0.5, 0.25, 7.5, 1448, 0.125, 0.0625, "bbr"};
  const NetworkProfile read = ParseNetworkProfile(FormatNetworkProfile(profile), "network.json");
  EXPECT_EQ(read.planned, profile.planned);
  EXPECT_EQ(read.settings, profile.settings);
  EXPECT_EQ(read.hosts[1].address, "10.0.0.1");
  EXPECT_EQ(read.hosts[1].facts, profile.hosts[1].facts);
  ASSERT_EQ(read.rows.size(), profile.rows.size());
  EXPECT_EQ(read.rows[1].bytes_per_s, 100e6);
  const NetworkRow& first = read.rows.front();
  EXPECT_EQ(first.flows, 3);
  EXPECT_EQ(first.rtt_median_s, 1e-3);
  EXPECT_EQ(first.rtt_p10_s, 5e-4);
  ASSERT_TRUE(first.tcp);
  EXPECT_EQ(first.tcp->segments, 100);
  EXPECT_EQ(first.tcp->retransmitted, 20);
  EXPECT_EQ(first.tcp->needless, 3);
  EXPECT_EQ(first.tcp->rtt_s, 0.5);
  EXPECT_EQ(first.tcp->min_rtt_s, 0.25);
  EXPECT_EQ(first.tcp->window_segments, 7.5);
  EXPECT_EQ(first.tcp->segment_bytes, 1448);
  EXPECT_EQ(first.tcp->receiver_limited, 0.125);
  EXPECT_EQ(first.tcp->sender_limited, 0.0625);
  EXPECT_EQ(first.tcp->congestion_control, "bbr");
}

TEST(NetworkProfileFile, WhatNoProbeMeasuresIsRefused) {
  NetworkProfile profile = Equal(2);
  profile.version = profile.started = profile.hosts[0].address = profile.hosts[1].address = "x";
  for (NetworkRow& any : profile.rows) any.tcp->congestion_control = "cubic";
  const auto error = [&](const auto& change) {
    NetworkProfile other = profile;
    change(&other.rows.front());
    change(&other.rows.back());
    return ErrorOf([&] { ParseNetworkProfile(FormatNetworkProfile(other), "n.json"); });
  };
  EXPECT_FALSE(error([](NetworkRow*) {}));
  EXPECT_TRUE(Says(error([](NetworkRow* r) { r->tcp->retransmitted = r->tcp->segments + 1; }),
                   "retransmitted"));
  EXPECT_TRUE(Says(error([](NetworkRow* r) { r->tcp->needless = 1; }), "needless"));
  EXPECT_TRUE(Says(error([](NetworkRow* r) {
                     if (r->bytes_per_s) r->bytes_per_s = 0;
                   }),
                   "bytes_per_s"));
  EXPECT_TRUE(Says(error([](NetworkRow* r) {
                     if (r->rtt_median_s) r->rtt_median_s = 0;
                   }),
                   "rtt_median_s"));
  EXPECT_TRUE(Says(error([](NetworkRow* r) { r->flows = 65; }), "flows"));
}

TEST(NetworkFindings, WhatWasNotMeasuredIsUnknown) {
  NetworkProfile profile = Equal(3);
  for (NetworkRow& row : profile.rows) {
    row.bytes_per_s.reset();
    row.rtt_median_s.reset();
    row.tcp.reset();
    row.problem = "h1 is gone";
  }
  const NetworkSummary summary = Summarise(profile);
  EXPECT_TRUE(summary.findings.empty());
  EXPECT_FALSE(summary.bandwidth || summary.rtt_s || summary.loss.share() || summary.flow_cap);
}

}  // namespace
}  // namespace stepcast::network
