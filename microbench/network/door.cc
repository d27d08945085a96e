#include "microbench/network/door.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "data/record/network_profile.h"
#include "microbench/network/token.h"

namespace stepcast::network {
namespace {

constexpr double kToSayWhoS = 3;
constexpr std::size_t kMostStrangers = 512;
// As many connections as one measurement may have.
constexpr std::size_t kMostGuests = std::size_t{kMostProbedHosts} * kMostProbeFlows;
constexpr std::size_t kMostRefusals = 20;
constexpr int kNoticeMs = 50;

std::string DataKey(int step, int from, int flow) {
  return fmt::format("{} {} {} {}", kData, step, from, flow);
}

}  // namespace

Door::Door(const Address& address, std::string token)
    : token_(std::move(token)), listener_(Socket::Listen(address)) {
  address_ = listener_.local();
  thread_ = std::thread([this] { Watch(); });
}

Door::~Door() {
  closing_ = true;
  thread_.join();
}

void Door::AdmitOnly(std::set<std::string> hosts) {
  const std::lock_guard lock(mutex_);
  only_some_ = true;
  admitted_ = std::move(hosts);
}

std::vector<std::string> Door::refusals() const {
  const std::lock_guard lock(mutex_);
  return refusals_;
}

void Door::Forget(int step) {
  const std::lock_guard lock(mutex_);
  oldest_step_ = step;
  // Connections of this step may have come before this host heard of it.
  std::erase_if(guests_, [&](const auto& entry) {
    const Message& hello = entry.second.hello;
    return hello.verb() == kData && hello.Integer("step", 0, kMostSteps) < step;
  });
}

Door::Guest Door::Take(const std::string& key, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (const auto found = guests_.find(key); found != guests_.end()) {
      Guest guest = std::move(found->second);
      guests_.erase(found);
      return guest;
    }
    if (deadline.stopped()) throw NetworkError("interrupted");
    if (deadline.over()) throw NetworkError("did not connect in time");
    came_.wait_for(lock, std::chrono::milliseconds(kNoticeMs));
  }
}

Door::Guest Door::TakeJoin(const Deadline& deadline) { return Take(kJoin, deadline); }

Socket Door::TakeData(int step, int from, int flow, const Deadline& deadline) {
  return Take(DataKey(step, from, flow), deadline).line.Release();
}

void Door::Refuse(const Socket& socket, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    const std::string text = socket.peer().host() + " " + why;
    const bool said = std::find(refusals_.begin(), refusals_.end(), text) != refusals_.end();
    if (!said && refusals_.size() < kMostRefusals) refusals_.push_back(text);
  }
  try {
    socket.SendSome(Message(kRefused).Set("why", why).Line() + "\n");
  } catch (const NetworkError&) {
    // He has gone.
  }
}

void Door::Watch() {
  while (!closing_) {
    std::vector<pollfd> polled = {{listener_.fd(), POLLIN, 0}};
    for (const Stranger& stranger : strangers_)
      polled.push_back({stranger.line.socket().fd(), POLLIN, 0});
    if (poll(polled.data(), polled.size(), kNoticeMs) < 0) continue;
    auto ready = polled.begin() + 1;
    for (auto it = strangers_.begin(); it != strangers_.end(); ++ready) {
      const bool done = ready->revents != 0 && Hear(&*it);
      const bool late = !done && Clock::now() > it->until;
      if (late) Refuse(it->line.socket(), "did not say who it is");
      it = done || late ? strangers_.erase(it) : std::next(it);
    }
    if (polled.front().revents == 0) continue;
    while (Socket socket = listener_.Accept()) LetIn(std::move(socket));
  }
}

void Door::LetIn(Socket socket) {
  bool known = true;
  {
    const std::lock_guard lock(mutex_);
    known = !only_some_ || admitted_.count(socket.peer().host()) > 0;
  }
  if (!known) return Refuse(socket, "is none of the hosts");
  // The longest silent one makes room.
  if (strangers_.size() >= kMostStrangers) strangers_.pop_front();
  strangers_.push_back({LineSocket(std::move(socket)), Clock::now() + SecondsToClock(kToSayWhoS)});
}

bool Door::Hear(Stranger* stranger) {
  const Socket& socket = stranger->line.socket();
  Guest guest;
  std::string key;
  try {
    const std::optional<std::string> line = stranger->line.TryRead();
    if (!line) return false;
    guest.hello = Message::Parse(*line);
    const Message& hello = guest.hello;
    if (!SameToken(hello.Text("token"), token_)) throw NetworkError("showed another token");
    if (hello.Integer("stepcast", 0, 1 << 20) != kProtocol) {
      throw NetworkError("is a stepcast of another version");
    }
    key = hello.verb();
    if (key == kData) {
      const int step = hello.Integer("step", 0, kMostSteps);
      key = DataKey(step, hello.Integer("from", 0, kMostProbedHosts - 1),
                    hello.Integer("flow", 0, kMostProbeFlows - 1));
      const std::lock_guard lock(mutex_);
      if (step < oldest_step_) throw NetworkError("came to a measurement that is over");
    } else if (key != kJoin) {
      throw NetworkError("sent what is no message");
    }
    if (key != kJoin) socket.SendSome(Message(kWelcome).Line() + "\n");
  } catch (const NetworkError& e) {
    Refuse(socket, e.what());
    return true;
  }
  guest.line = std::move(stranger->line);
  {
    const std::lock_guard lock(mutex_);
    if (guests_.size() >= kMostGuests) return true;
    guests_.emplace(key, std::move(guest));
  }
  came_.notify_all();
  return true;
}

}  // namespace stepcast::network
