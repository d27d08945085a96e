// Conditions of links, by a tc that only keeps what it was called with.
#include "microbench/steps/shaping.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temp_file.h"

namespace stepcast::steps {
namespace {

using network::Message;
using network::NetworkError;
using Lines = std::vector<std::string>;

Conditions Cell(std::optional<double> megabits_per_s, std::optional<double> rtt_ms,
                std::optional<double> loss) {
  Conditions conditions;
  if (megabits_per_s) conditions.bandwidth = GigabitsPerSecond(*megabits_per_s / 1e3);
  if (rtt_ms) conditions.rtt = Milliseconds(*rtt_ms);
  conditions.loss = loss;
  return conditions;
}

Lines WordsOf(const Conditions& conditions) {
  Lines words;
  for (const UndoableCommand& command : ShapingCommands("eth0", 1500, conditions, "")) {
    words.push_back(command.words);
  }
  return words;
}

TEST(ShapingCommands, SayWhatTheConditionsAsk) {
  EXPECT_EQ(WordsOf({}), Lines());
  EXPECT_EQ(WordsOf(Cell({}, 0, 0)), Lines());
  EXPECT_EQ(WordsOf(Cell(100, {}, {})),
            Lines{"tc qdisc add dev eth0 root handle 57ca: tbf rate 100000000bit burst 15528 limit "
                  "65536000 overhead 24"});
  EXPECT_EQ(WordsOf(Cell({}, 10, 0)),
            Lines{"tc qdisc add dev eth0 root handle 57cb: netem limit 1001000 delay 5000us"});
  EXPECT_EQ(WordsOf(Cell({}, 0, 0.015)),
            Lines{"tc qdisc add dev eth0 root handle 57cb: netem limit 1000 loss 1.5%"});
  // 5 ms of 1 Gbit/s are 413 packets.
  EXPECT_EQ(WordsOf(Cell(1000, 10, 0.001)),
            (Lines{"tc qdisc add dev eth0 root handle 57ca: tbf rate 1000000000bit burst 128028 "
                   "limit 65536000 overhead 24",
                   "tc qdisc add dev eth0 parent 57ca:1 handle 57cb: netem limit 1413 delay "
                   "5000us loss 0.1%"}));
}

// A bucket holds two packets and a millisecond; and all is undone at the root, once.
TEST(ShapingCommands, KeepTheirUndoing) {
  const auto commands = ShapingCommands("lo", 65536, Cell(1, 4, 0.5), "");
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_NE(commands[0].words.find(" burst 131225 "), std::string::npos) << commands[0].words;
  EXPECT_EQ(commands[0].undo, "tc qdisc del dev lo root");
  EXPECT_EQ(commands[1].undo, "");
  EXPECT_EQ(ShapingCommands("lo", 1500, Cell({}, 4, 0.5), "in").at(0).undo,
            "tc qdisc del dev lo root");
}

// What comes in leaves by an interface of its own, with a rate alone, that goes first at the end.
TEST(ShapingCommands, ShapeWhatComesInWhereTheyCan) {
  const auto commands = ShapingCommands("eth0", 1500, Cell(100, 10, 0), "stepcast2");
  ASSERT_EQ(commands.size(), 7U);
  EXPECT_EQ(commands[1].words, "ip link add name stepcast2 type ifb");
  EXPECT_EQ(commands[1].undo, "ip link del dev stepcast2");
  EXPECT_EQ(commands[2].words, "ip link set dev stepcast2 up");
  EXPECT_EQ(commands[3].words,
            "tc qdisc add dev stepcast2 root handle 57cc: tbf rate 100000000bit burst 53028 limit "
            "65536000 overhead 24");
  EXPECT_EQ(commands[4].words, "tc qdisc add dev eth0 handle ffff: ingress");
  EXPECT_EQ(commands[4].undo, "tc qdisc del dev eth0 ingress");
  EXPECT_EQ(commands[5].words,
            "tc filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 action mirred "
            "egress redirect dev stepcast2");
  EXPECT_NE(commands[6].words.find("parent 57ca:1 handle 57cb: netem"), std::string::npos);
  for (const int last : {2, 3, 5, 6}) {
    EXPECT_EQ(commands[static_cast<std::size_t>(last)].undo, "");
  }
}

TEST(ShapingMessages, SayTheSameAgainAndNothingElse) {
  for (const Conditions& cell : {Conditions(), Cell(0.1, {}, {}), Cell({}, 0, 0.3),
                                 Cell(123.456, 7.5, 0), Cell(1e6, 10'000, 0.9)}) {
    EXPECT_EQ(ReadConditions(Message::Parse(ConditionsMessage(kShape, cell).Line())), cell);
  }
  const struct {
    const char* key;
    double value;
  } wrong[] = {{"bandwidth", 0}, {"bandwidth", 999}, {"bandwidth", 1.01e12}, {"rtt", -1},
               {"rtt", 10.1},    {"loss", -0.1},     {"loss", 0.91}};
  for (const auto& [key, value] : wrong) {
    EXPECT_THROW(ReadConditions(Message(kShape).Set(key, value)), NetworkError) << key << value;
  }
  EXPECT_EQ(ReadConditions(Message(kShape).Set("bandwidth", 1000)).bandwidth->si(), 1000);
  EXPECT_EQ(ReadConditions(Message(kShape).Set("bandwidth", 1e12)).bandwidth->si(), 1e12);
}

TEST(ShapingMessages, AnInterfacesNameIsNoOptionAndNoCommand) {
  for (const char* name :
       {"eth0", "enp3s0f1.100", "br-lan", "eth0:1", "abcdefghijklmno", "a_b@c"}) {
    EXPECT_TRUE(IsInterfaceName(name)) << name;
  }
  for (const char* name : {"", "-x", "eth0 root", "a;b", "$(x)", "abcdefghijklmnop", "a/b"}) {
    EXPECT_FALSE(IsInterfaceName(name)) << name;
  }
}

// ---- The guard, of commands that change no network.

TEST(ShapingGuard, TellsWhatACommandSaid) {
  Guard guard;
  const Guard::Answer said = guard.Run({"printf %s\\n\\n%s a b", ""});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.lines, (Lines{"a", "b"})) << "without the empty line";
  EXPECT_EQ(said.text(), "a; b");
  const Guard::Answer failed = guard.Run({"false", ""});
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(failed.text(), "exit code 1");
  EXPECT_EQ(guard.Run({"no-such-program-of-stepcast", ""}).code, 127);
}

// The last first, and nothing that did not succeed; what cannot be undone is said, and once.
TEST(ShapingGuard, UndoesTheLastFirst) {
  const TempFolder folder;
  const std::string outer = folder.Path("a");
  const std::string inner = folder.Path("a/b");
  Guard guard;
  EXPECT_EQ(guard.Run({"mkdir " + outer, "rmdir " + outer}).code, 0);
  EXPECT_EQ(guard.Run({"mkdir " + inner, "rmdir " + inner}).code, 0);
  const Guard::Answer again = guard.Run({"mkdir " + inner, "rmdir " + folder.path()});
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.text().find(inner), std::string::npos) << again.text();
  Guard::Answer undone = guard.Undo();
  EXPECT_EQ(undone.code, 0) << undone.text();
  EXPECT_FALSE(std::filesystem::exists(outer));
  guard.Run({"mkdir " + outer, "rmdir " + inner});
  undone = guard.Undo();
  EXPECT_EQ(undone.code, 1);
  EXPECT_EQ(undone.text().find("rmdir " + inner + ": "), 0U) << undone.text();
  EXPECT_EQ(guard.Undo().code, 0);
}

class StandInTc : public testing::Test {
 protected:
  void SetUp() override {
    Program("tc", "echo \"$*\" >>" + folder_.Path("calls") +
                      "\n"
                      "if [ -f " +
                      folder_.Path("fail") + " ]; then . " + folder_.Path("fail") +
                      "; fi\n"
                      "[ \"$2\" = show ] && cat " +
                      folder_.Path("queues") + "\nexit 0\n");
    // No interface is made, for what comes in.
    Program("ip", "exit 1\n");
    // A network of its own is where nothing happens.
    Program("unshare", "while [ \"${1#--}\" != \"$1\" ]; do shift; done; exec \"$@\"\n");
    folder_.Write("queues", "qdisc noqueue 0: root refcnt 2 \n");
    before_ = std::getenv("PATH");
    setenv("PATH", (folder_.path() + ":" + before_).c_str(), 1);
  }
  void TearDown() override { setenv("PATH", before_.c_str(), 1); }

  void Program(const std::string& name, const std::string& script) const {
    chmod(folder_.Write(name, "#!/bin/sh\n" + script).c_str(), 0755);
  }
  // What holds the words fails with a sentence.
  void FailOf(const std::string& words, const std::string& sentence) const {
    folder_.Write(
        "fail", "case \"$*\" in *'" + words + "'*) echo '" + sentence + "' >&2; exit 2 ;; esac\n");
  }
  Lines Calls() const {
    std::istringstream in(FileContent(folder_.Path("calls")));
    Lines lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  // The last call, once it is this one or a while has passed.
  std::string LastCall(const std::string& awaited) const {
    for (int i = 0; i < 100; ++i) {
      const Lines calls = Calls();
      if (!calls.empty() && calls.back() == awaited) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return Calls().empty() ? "" : Calls().back();
  }

  TempFolder folder_;
  std::string before_;
};

TEST_F(StandInTc, EachCellIsUndoneBeforeTheNextAndAtTheEnd) {
  {
    Shaper shaper("lo");
    EXPECT_EQ(shaper.WhyNot(Cell(100, 10, 0.01)), "");
    folder_.Write("calls", "");
    shaper.Set(Cell(100, {}, {}));
    shaper.Set(Cell(500, 10, {}));
    shaper.Set(Cell({}, 0, {}));
    shaper.Set(Cell(200, 0, {}));
  }
  std::string kinds;
  for (const std::string& call : Calls()) {
    kinds += call.find(" del ") != std::string::npos     ? "d"
             : call.find(" tbf ") != std::string::npos   ? "t"
             : call.find(" netem ") != std::string::npos ? "n"
                                                         : "?";
  }
  EXPECT_EQ(kinds, "tdtndtd");
  EXPECT_EQ(Calls().back(), "qdisc del dev lo root");
}

TEST_F(StandInTc, WhatFailsLeavesNothingBehind) {
  Shaper shaper("lo");
  FailOf("netem", "RTNETLINK answers: Cannot allocate memory");
  try {
    shaper.Set(Cell(100, 10, {}));
    FAIL();
  } catch (const NetworkError& e) {
    EXPECT_NE(std::string(e.what()).find("netem"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("Cannot allocate memory"), std::string::npos) << e.what();
  }
  EXPECT_EQ(Calls().back(), "qdisc del dev lo root");
  // Somebody else's queue, which came meanwhile, is not ours to take away.
  folder_.Write("calls", "");
  FailOf("tbf", "Error: Exclusivity flag on, cannot modify.");
  EXPECT_THROW(shaper.Set(Cell(100, {}, {})), NetworkError);
  EXPECT_EQ(Calls().size(), 1U);
}

TEST_F(StandInTc, AProgramThatIsKilledIsUndoneByItsGuard) {
  const pid_t child = fork();
  if (child == 0) {
    Shaper shaper("lo");
    shaper.Set(Cell(100, {}, {}));
    pause();
    _exit(1);
  }
  for (int i = 0; i < 100 && Calls().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(LastCall("qdisc del dev lo root"), "qdisc del dev lo root");
}

TEST_F(StandInTc, AGuardThatIsKilledIsReplaced) {
  {
    Guard guard;
    guard.Run({"tc qdisc add dev lo root x", "tc qdisc del dev lo root"});
    // What others use to end programs ends no guard.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) kill(guard.pid(), signal);
    EXPECT_EQ(guard.Run({"tc qdisc show", ""}).lines.size(), 1U);
    kill(guard.pid(), SIGKILL);
  }
  EXPECT_EQ(Calls().back(), "qdisc del dev lo root");
}

TEST_F(StandInTc, WhatCannotBeShapedIsToldBeforeAnythingIs) {
  const struct {
    const char* failing;
    const char* sentence;
    Conditions conditions;
    const char* said;
  } cases[] = {
      {"netem", "Error: Specified qdisc kind is unknown.", Cell({}, 10, {}), "has no netem"},
      {"netem", "RTNETLINK answers: No such file or directory", Cell({}, 0, 0.1), "has no netem"},
      {"netem", "Error: Specified qdisc kind is unknown.", Cell(100, 0, 0), ""},
      {"tbf", "Error: Specified qdisc kind is unknown.", Cell(100, 0, 0), "has no tbf"},
      {"del", "RTNETLINK answers: Operation not permitted", Cell(100, 0, 0), "CAP_NET_ADMIN"},
      {"show", "what is that", Cell(100, 0, 0), "what is that"},
  };
  for (const auto& c : cases) {
    FailOf(c.failing, c.sentence);
    const std::string why = Shaper("lo").WhyNot(c.conditions);
    EXPECT_EQ(why.empty(), *c.said == '\0') << why;
    EXPECT_NE(why.find(c.said), std::string::npos) << why;
  }
  EXPECT_NE(Shaper("no0").WhyNot({}).find("there is no interface 'no0' here: lo"),
            std::string::npos);
  // Nothing but a queue that is not there was ever touched on an interface of this network.
  for (const std::string& call : Calls()) {
    const bool harmless = call.find(" show ") != std::string::npos ||
                          call.find(" del dev lo root handle") != std::string::npos ||
                          call.starts_with("qdisc add dev lo root tbf rate 8mbit") ||
                          call == "qdisc add dev lo root netem limit 10";
    EXPECT_TRUE(harmless) << call;
  }
}

TEST_F(StandInTc, AQueueOfSomebodyElsesStays) {
  std::remove(folder_.Path("fail").c_str());
  for (const char* own : {"qdisc fq_codel 0: root refcnt 2 limit 10240p\n",
                          "qdisc mq 0: root \nqdisc fq_codel 0: parent :2\n",
                          "qdisc pfifo_fast 0: root\nqdisc clsact ffff: parent ffff:fff1 \n"}) {
    folder_.Write("queues", own);
    EXPECT_EQ(Shaper("lo").WhyNot(Cell(100, {}, {})), "") << own;
  }
  for (const char* other : {"qdisc tbf 8001: root refcnt 2 rate 10Mbit\n",
                            "qdisc htb 1: root refcnt 2\nqdisc sfq 10: parent 1:1\n",
                            "qdisc mq 0: root \nqdisc fq 8002: parent :1 limit 10000p\n"}) {
    folder_.Write("queues", other);
    const std::string why = Shaper("lo").WhyNot(Cell(100, {}, {}));
    EXPECT_NE(why.find("lo has a queue that somebody set up"), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace stepcast::steps
