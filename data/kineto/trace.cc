#include "data/kineto/trace.h"

#include <rapidjson/reader.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "data/io/text_file.h"
#include "data/record/controls.h"
#include "data/record/input_error.h"
#include "data/values/size_limits.h"
#include "data/values/text_as_number.h"
#include "data/values/utf8.h"

namespace stepcast {
namespace {

constexpr int kDeepest = 64;           // JSON within JSON; Kineto needs eight
constexpr double kLongestTime = 4e15;  // us; the year 2096
constexpr std::int64_t kLongestCall = 1'000'000'000'000'000;  // ns; a million seconds
constexpr std::int64_t kLongestDim = 1'000'000'000'000;
constexpr char kEndOfText = '\x1f';  // between texts of a key; JSON text has no such character

// ---- The bytes of a file, one after the other, with the line they stand in.

// A stream as the parser takes them; its end reads as a nought.
class FileBytes {
 public:
  using Ch = char;

  explicit FileBytes(const std::string& path) : path_(path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) throw IsFolder(path);
    file_.reset(std::fopen(path.c_str(), "rb"));
    if (!file_) throw Unreadable(path);
    Fill();
    const std::string_view head(at_, static_cast<std::size_t>(end_ - at_));
    if (head.starts_with("\x1f\x8b")) {
      throw InputError({path, 0, ""}, "", "is compressed with gzip",
                       "plain JSON: gunzip the trace first");
    }
    if (head.empty()) throw InputError({path, 0, ""}, "", "is empty", "a trace in JSON");
    if (head.starts_with("\xef\xbb\xbf")) at_ += 3;
  }

  bool done() { return Peek() == '\0' && at_ == end_; }
  char Peek() {
    if (at_ == end_) [[unlikely]]
      Fill();
    return *at_;
  }
  char Take() {
    const char taken = Peek();
    if (at_ != end_) ++at_;
    return taken;
  }
  std::size_t Tell() const { return before_ + static_cast<std::size_t>(at_ - buffer_.data()); }
  // Lines are counted when somebody asks.
  InputPlace place() const { return {path_, line_ + LinesTo(at_), ""}; }

  // Only of streams that are written to.
  char* PutBegin() { std::abort(); }
  void Put(char /*byte*/) { std::abort(); }
  std::size_t PutEnd(char* /*begin*/) { std::abort(); }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  int LinesTo(const char* end) const {
    return static_cast<int>(std::count(buffer_.data(), end, '\n'));
  }

  void Fill() {
    line_ += LinesTo(end_);
    before_ += static_cast<std::size_t>(end_ - buffer_.data());
    const std::size_t size = std::fread(buffer_.data(), 1, buffer_.size() - 1, file_.get());
    at_ = buffer_.data();
    end_ = at_ + size;
    buffer_[size] = '\0';
    if (size == 0 && std::ferror(file_.get()) != 0) {
      throw InputError(place(), "", "cannot be read to its end");
    }
  }

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<char> buffer_ = std::vector<char>((1U << 18U) + 1);
  const char* at_ = buffer_.data();
  const char* end_ = at_;
  std::size_t before_ = 0;  // bytes before the buffer
  int line_ = 1;            // that the buffer begins in
};

// ---- Values.

std::string Shown(std::string_view text) { return std::string(text.substr(0, 80)); }

std::optional<std::int64_t> WholeNumber(std::string_view text) {
  return TextAsNumber<std::int64_t>(text);
}

// Microseconds as nanoseconds. What a double would round is kept: 1666149715033200.125.
std::optional<std::int64_t> Nanoseconds(std::string_view text) {
  const auto rounded = TextAsNumber<double>(text);
  if (!rounded || !(std::abs(*rounded) <= kLongestTime)) return std::nullopt;
  const std::size_t point = text.find('.');
  const auto whole = WholeNumber(text.substr(0, point));
  if (!whole || text.front() == '-') return std::llround(*rounded * 1e3);
  std::int64_t fraction = 0;
  if (point != std::string_view::npos) {
    std::string digits(text.substr(point + 1, 3));
    digits.resize(3, '0');
    const auto value = WholeNumber(digits);
    if (!value || text.find_first_of("eE") != std::string_view::npos) {
      return std::llround(*rounded * 1e3);
    }
    fraction = *value;
  }
  return *whole * 1000 + fraction;
}

std::optional<KinetoCategory> CategoryOf(std::string_view text) {
  static const std::unordered_map<std::string_view, KinetoCategory> known = {
      {"", KinetoCategory::kOperator},  // the oldest state none
      {"cpu_op", KinetoCategory::kOperator},
      {"Operator", KinetoCategory::kOperator},
      {"user_annotation", KinetoCategory::kAnnotation},
      {"cuda_runtime", KinetoCategory::kLaunch},
      {"cuda_driver", KinetoCategory::kLaunch},
      {"hip_runtime", KinetoCategory::kLaunch},
      {"xpu_runtime", KinetoCategory::kLaunch},
      {"Runtime", KinetoCategory::kLaunch},
      {"kernel", KinetoCategory::kKernel},
      {"Kernel", KinetoCategory::kKernel},
      {"gpu_memcpy", KinetoCategory::kTransfer},
      {"Memcpy", KinetoCategory::kTransfer},
      {"gpu_memset", KinetoCategory::kTransfer},
      {"Memset", KinetoCategory::kTransfer}};
  const auto it = known.find(text);
  if (it == known.end()) return std::nullopt;
  return it->second;
}

// ---- The arguments of an operator, from the texts that stand for them.

// "[[8,3],[],[[2],[3]]]": dims, or lists of dims.
class DimsReader {
 public:
  DimsReader(std::string_view text, const FileBytes& bytes) : text_(text), bytes_(bytes) {}

  void Read(KinetoInputs* inputs) {
    Enter();
    for (std::size_t i = 0; !Leave(); ++i) {
      if (inputs->size() <= i) inputs->emplace_back();
      Enter();
      while (!Leave()) {
        if (text_[at_] == '[') {
          Enter();
          auto& dims = (*inputs)[i].list.emplace_back();
          while (!Leave()) dims.push_back(Number());
        } else {
          (*inputs)[i].dims.push_back(Number());
        }
      }
    }
  }

 private:
  void Enter() {
    if (text_.substr(at_, 1) != "[") throw Wrong();
    ++at_;
  }
  bool Leave() {
    if (text_.substr(at_, 1) == ",") ++at_;
    if (at_ >= text_.size()) throw Wrong();
    if (text_[at_] != ']') return false;
    ++at_;
    return true;
  }
  std::int64_t Number() {
    const std::size_t end = std::min(text_.find_first_of(",]", at_), text_.size());
    const auto value = WholeNumber(text_.substr(at_, end - at_));
    if (!value || *value < 0 || *value > kLongestDim) throw Wrong();
    at_ = end;
    return *value;
  }
  InputError Wrong() const {
    InputPlace place = bytes_.place();
    place.key = "Input Dims";
    return {place, Shown(text_), "is not a list of shapes",
            "lists of whole numbers, e.g. [[8, 3, 224, 224], []]"};
  }

  std::string_view text_;
  const FileBytes& bytes_;
  std::size_t at_ = 0;
};

void TakeTexts(std::string_view texts, std::string KinetoInput::*field, KinetoInputs* inputs) {
  for (std::size_t i = 0; !texts.empty(); ++i) {
    const std::size_t end = texts.find(kEndOfText);
    if (inputs->size() <= i) inputs->emplace_back();
    (*inputs)[i].*field = std::string(texts.substr(0, end));
    texts.remove_prefix(end + 1);
  }
}

class Numbering {
 public:
  // The number of a text, and whether it is new.
  std::pair<int, bool> Of(const std::string& text) {
    const auto [it, fresh] = numbers_.try_emplace(text, static_cast<int>(numbers_.size()));
    return {it->second, fresh};
  }

 private:
  std::unordered_map<std::string, int> numbers_;
};

// ---- The parser's listener.

// An event while its fields come in, in any order.
struct OpenEvent {
  std::string phase, category, name, start, duration, process, thread;
  std::string dims, types, values;
  KinetoMessage message;
  bool told = false;  // something of a message
  bool named = false;
  std::int64_t external = -1;
  std::int64_t correlation = -1;
  std::int64_t sequence = -1;
  std::int64_t forward_thread = 0;
  std::int64_t device = 0;

  void Clear() {
    for (std::string* text :
         {&phase, &category, &name, &start, &duration, &process, &thread, &dims, &types, &values}) {
      text->clear();
    }
    if (told) message = {};
    told = false;
    named = false;
    external = correlation = sequence = -1;
    forward_thread = device = 0;
  }
};

// A key of an event, and where its value goes.
struct EventKey {
  std::string_view name;
  std::string OpenEvent::*value;
};
constexpr EventKey kEventKeys[] = {{"ph", &OpenEvent::phase},     {"cat", &OpenEvent::category},
                                   {"name", &OpenEvent::name},    {"ts", &OpenEvent::start},
                                   {"dur", &OpenEvent::duration}, {"pid", &OpenEvent::process},
                                   {"tid", &OpenEvent::thread}};

// A key of an event's arguments, and where its list, number or text goes. Some are spelt in two
// ways.
struct ArgumentKey {
  std::string_view name;
  std::string OpenEvent::*list;
  std::int64_t OpenEvent::*number = nullptr;
  std::string KinetoMessage::*text = nullptr;
};
constexpr ArgumentKey kArgumentKeys[] = {
    {"Input Dims", &OpenEvent::dims},
    {"Input dims", &OpenEvent::dims},
    {"Input type", &OpenEvent::types},
    {"Input Type", &OpenEvent::types},
    {"Concrete Inputs", &OpenEvent::values},
    {"External id", nullptr, &OpenEvent::external},
    {"external id", nullptr, &OpenEvent::external},
    {"correlation", nullptr, &OpenEvent::correlation},
    {"Sequence number", nullptr, &OpenEvent::sequence},
    {"Fwd thread id", nullptr, &OpenEvent::forward_thread},
    {"device", nullptr, &OpenEvent::device},
    {"Collective name", nullptr, nullptr, &KinetoMessage::collective},
    {"dtype", nullptr, nullptr, &KinetoMessage::type},
    {"In msg nelems", nullptr, nullptr, &KinetoMessage::in_elements},
    {"Out msg nelems", nullptr, nullptr, &KinetoMessage::out_elements},
    {"Group size", nullptr, nullptr, &KinetoMessage::group_size},
    {"Process Group Name", nullptr, nullptr, &KinetoMessage::group},
    {"Process Group Ranks", nullptr, nullptr, &KinetoMessage::members},
    {"Seq", nullptr, nullptr, &KinetoMessage::number}};

// The key of that name; nullptr where there is none.
template <class Key, std::size_t kCount>
const Key* FindKey(const Key (&keys)[kCount], std::string_view name) {
  // Most differ in their length or their first letter: an event has a dozen keys, each of which is
  // looked for.
  for (const Key& key : keys) {
    if (name.size() == key.name.size() && name.front() == key.name.front() && name == key.name) {
      return &key;
    }
  }
  return nullptr;
}

class Listener : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Listener> {
 public:
  using Size = rapidjson::SizeType;

  // Without a visitor the trace keeps the events.
  Listener(const FileBytes& bytes, KinetoTrace* trace, KinetoVisitor* visitor)
      : bytes_(bytes), trace_(*trace), visitor_(visitor) {}

  bool found_events() const { return found_events_; }

  // The names below are the parser's.
  bool Null() { return Value("", Kind::kNothing); }
  bool Bool(bool value) { return Value(value ? "True" : "False", Kind::kNothing); }
  bool RawNumber(const char* text, Size size, bool /*copy*/) {
    return Value({text, size}, Kind::kNumber);
  }
  bool String(const char* text, Size size, bool /*copy*/) {
    const std::string_view whole(text, size);
    // The parser lets half a surrogate pair pass, "\udc00", which is no text.
    if (whole.find('\xed') != std::string_view::npos && !IsUtf8(whole)) return false;
    return Value(whole, Kind::kText);
  }

  bool StartObject() {
    Deeper();
    if (depth_ == 1) {
      place_ = Place::kFile;
    } else if (place_ == Place::kEvents && depth_ == events_depth_ + 1) {
      event_.Clear();
      at_arguments_ = false;
      event_key_ = nullptr;
      argument_key_ = nullptr;
    } else if (InEvent() && depth_ == events_depth_ + 2) {
      in_arguments_ = at_arguments_;
      argument_key_ = nullptr;
    } else if (place_ == Place::kDevices && depth_ == 3) {
      trace_.devices.emplace_back();
      major_.clear();
      minor_.clear();
    } else if (place_ == Place::kFile && depth_ == 2 && file_key_ == "distributedInfo") {
      place_ = Place::kDistributed;
    } else if (Collecting() != nullptr) {
      throw Wrong(argument_key_->name, "{", "is no list", "a list");
    }
    return true;
  }
  bool Key(const char* begin, Size size, bool /*copy*/) {
    const std::string_view text(begin, size);
    if (place_ == Place::kFile && depth_ == 1) {
      file_key_ = text;
    } else if (InEvent() && depth_ == events_depth_ + 1) {
      at_arguments_ = text == "args";
      event_key_ = FindKey(kEventKeys, text);
    } else if (InEvent() && depth_ == events_depth_ + 2 && in_arguments_) {
      argument_key_ = FindKey(kArgumentKeys, text);
    } else if ((place_ == Place::kDevices && depth_ == 3) ||
               (place_ == Place::kDistributed && depth_ == 2)) {
      device_key_ = text;
    }
    return true;
  }
  bool EndObject(Size /*members*/) {
    if (InEvent() && depth_ == events_depth_ + 1) TakeEvent();
    if (InEvent() && depth_ == events_depth_ + 2) in_arguments_ = false;
    --depth_;
    if (depth_ == 1 && place_ == Place::kDistributed) place_ = Place::kFile;
    return true;
  }

  bool StartArray() {
    Deeper();
    if (depth_ == 1) {  // the events alone
      StartEvents();
    } else if (place_ == Place::kFile && depth_ == 2) {
      if (file_key_ == "traceEvents") StartEvents();
      if (file_key_ == "deviceProperties") place_ = Place::kDevices;
    } else if (place_ == Place::kEvents && depth_ == events_depth_ + 1) {
      throw Wrong("traceEvents", "[", "is not an event", "objects");
    } else if (std::string* dims = Collecting(); dims != nullptr) {
      if (IsOfDims()) {
        if (!dims->empty() && dims->back() != '[') *dims += ',';
        *dims += '[';
      } else if (depth_ > events_depth_ + 3) {
        throw Wrong(argument_key_->name, "[", "is a list within the list", "a list of texts");
      }
    }
    return true;
  }
  bool EndArray(Size /*elements*/) {
    if (std::string* dims = Collecting(); dims != nullptr && IsOfDims()) *dims += ']';
    --depth_;
    if (depth_ == 1 && place_ != Place::kFile) place_ = Place::kFile;
    return true;
  }

 private:
  enum class Kind { kNothing, kNumber, kText };
  enum class Place { kFile, kEvents, kDevices, kDistributed };

  void Deeper() {
    if (++depth_ > kDeepest) {
      throw InputError(bytes_.place(), "", "is nested too deeply",
                       "at most " + std::to_string(kDeepest) + " levels");
    }
  }

  void StartEvents() {
    if (found_events_) throw Wrong("traceEvents", "", "is given twice", "one list of events");
    found_events_ = true;
    place_ = Place::kEvents;
    events_depth_ = depth_;
  }

  bool InEvent() const { return place_ == Place::kEvents && depth_ > events_depth_; }

  // Where elements of the list in which we are belong; null for a list of no interest.
  std::string* Collecting() {
    if (!InEvent() || !in_arguments_ || depth_ < events_depth_ + 3) return nullptr;
    if (argument_key_ == nullptr) return nullptr;
    if (argument_key_->list != nullptr) return &(event_.*argument_key_->list);
    if (argument_key_->text != &KinetoMessage::members) return nullptr;
    event_.told = true;
    return &event_.message.members;
  }
  bool IsOfDims() const { return argument_key_->list == &OpenEvent::dims; }

  InputError Wrong(std::string_view key, std::string_view value, const char* problem,
                   const std::string& allowed) const {
    InputPlace place = bytes_.place();
    place.key = key;
    return {place, Shown(value), problem, allowed};
  }

  bool Value(std::string_view text, Kind kind) {
    if (std::string* list = Collecting(); list != nullptr) {
      TakeElement(text, kind, list);
    } else if (InEvent() && depth_ == events_depth_ + 1) {
      TakeField(text, kind);
    } else if (InEvent() && depth_ == events_depth_ + 2 && in_arguments_) {
      TakeArgument(text);
    } else if (place_ == Place::kEvents && depth_ == events_depth_) {
      throw Wrong("traceEvents", text, "is not an event", "objects");
    } else if (place_ == Place::kFile && depth_ == 1) {
      TakeFact(text);
    } else if (place_ == Place::kDevices && depth_ == 3) {
      TakeDevice(text);
    } else if (place_ == Place::kDistributed && depth_ == 2) {
      trace_.distributed[device_key_.substr(0, kLongestName)] = Shown(text);
    } else if (depth_ == 0) {
      throw Wrong("", text, "is not a trace", "an object with traceEvents");
    }
    return true;
  }

  void TakeElement(std::string_view text, Kind kind, std::string* list) {
    if (IsOfDims()) {
      if (kind != Kind::kNumber) {
        throw Wrong(argument_key_->name, text, "is not a length", "whole numbers");
      }
      if (list->back() != '[') *list += ',';
      *list += text;
    } else {
      *list += text;
      *list += kEndOfText;
    }
  }

  void TakeField(std::string_view text, Kind kind) {
    if (event_key_ == nullptr) return;
    event_.*event_key_->value = text;
    if (event_key_->value == &OpenEvent::name) event_.named = kind == Kind::kText;
  }

  void TakeArgument(std::string_view text) {
    if (argument_key_ == nullptr) return;
    if (argument_key_->number != nullptr) {
      // -1 for a number that does not fit 64 bits, and for what is no number.
      event_.*argument_key_->number = WholeNumber(text).value_or(-1);
    } else if (argument_key_->text != nullptr) {
      event_.told = true;
      event_.message.*argument_key_->text = text;
    }
  }

  // As a profile keeps it.
  std::string Fact(const std::string& key, std::string_view text) const {
    if (text.size() > kLongestName) {
      throw Wrong(key, text, "is too long", "at most " + std::to_string(kLongestName) + " bytes");
    }
    if (HasControls(text)) {
      throw Wrong(key, text, "has a control character", "a text of one line");
    }
    return std::string(text);
  }

  void TakeFact(std::string_view text) {
    if (file_key_ == "traceEvents") {
      throw Wrong("traceEvents", text, "is not a list", "a list of events");
    }
    if (file_key_ == "baseTimeNanoseconds") {
      trace_.base_time = WholeNumber(text).value_or(0);
    } else if (file_key_ == "pytorch_version" || file_key_ == "torch_version") {
      trace_.settings["pytorch"] = Fact(file_key_, text);
    } else if (file_key_ == "with_stack" || file_key_ == "profile_memory" ||
               file_key_ == "with_flops" || file_key_ == "with_modules") {
      trace_.settings[file_key_] = text == "1" || text == "True" ? "yes" : "no";
    } else if (file_key_ == "cuda_runtime_version" || file_key_ == "cuda_driver_version" ||
               file_key_ == "hip_runtime_version" || file_key_ == "hip_driver_version") {
      trace_.facts[file_key_] = Fact(file_key_, text);
    }
  }

  void TakeDevice(std::string_view text) {
    KinetoDevice& device = trace_.devices.back();
    if (device_key_ == "id") {
      device.id = static_cast<int>(WholeNumber(text).value_or(-1) & 0xffff);
    } else if (device_key_ == "name") {
      device.name = Fact(device_key_, text);
    } else if (device_key_ == "totalGlobalMem") {
      device.facts["memory"] = Fact(device_key_, text) + " B";
    } else if (device_key_ == "numSms") {
      device.facts["multiprocessors"] = Fact(device_key_, text);
    } else if (device_key_ == "computeMajor" || device_key_ == "computeMinor") {
      (device_key_ == "computeMajor" ? major_ : minor_) = Fact(device_key_, text);
      device.facts["compute_capability"] = major_ + (minor_.empty() ? "" : "." + minor_);
    }
  }

  void TakeEvent() {
    if (event_.phase != "X") return;
    const auto category = CategoryOf(event_.category);
    if (!category) return;
    if (!event_.named) throw Wrong("name", event_.name, "is not a name", "text");
    if (visitor_ == nullptr && trace_.events.size() >= kMostEvents) {
      throw Wrong("traceEvents", "", "are too many", "40 million events: record fewer steps");
    }
    KinetoEvent event;
    event.category = *category;
    event.start = Time("ts", event_.start);
    event.duration = Time("dur", event_.duration);
    if (event.duration < 0) throw Wrong("dur", event_.duration, "is negative", "0 or more");
    if (event.duration > kLongestCall) {
      throw Wrong("dur", event_.duration, "is out of range", "at most 1e6 s");
    }
    event.external = event_.external;
    event.correlation = event_.correlation;
    event.sequence = event_.sequence;
    event.forward_thread = event_.forward_thread;
    event.device = static_cast<int>(event_.device & 0xffff);
    if (!event.of_device()) {
      event.thread = threads_.Of(event_.process + kEndOfText + event_.thread).first;
      trace_.threads = std::max(trace_.threads, event.thread + 1);
    }
    if (visitor_ != nullptr) {
      Visit(event);
      return;
    }
    const auto [name, fresh_name] = names_.Of(event_.name);
    if (fresh_name) trace_.names.push_back(event_.name);
    event.name = name;
    if (!event.of_device()) event.inputs = Inputs();
    trace_.events.push_back(event);
  }

  void Visit(const KinetoEvent& event) {
    const bool wanted = !event_.dims.empty() && visitor_->WantsInputs(event_.name);
    KinetoInputs inputs;
    if (wanted) inputs = ReadInputs();
    visitor_->Take(event, event_.name, wanted ? &inputs : nullptr, event_.message);
  }

  std::int64_t Time(const char* key, const std::string& text) const {
    const auto time = Nanoseconds(text);
    if (!time) throw Wrong(key, text, "is not a time", "microseconds as a number");
    return *time;
  }

  int Inputs() {
    if (event_.dims.empty()) return -1;
    std::string key = event_.dims;
    key += kEndOfText;
    key += event_.types;
    key += '\0';
    key += event_.values;
    const auto [number, fresh] = inputs_.Of(key);
    if (fresh) trace_.inputs.push_back(ReadInputs());
    return number;
  }

  KinetoInputs ReadInputs() const {
    KinetoInputs inputs;
    DimsReader(event_.dims, bytes_).Read(&inputs);
    TakeTexts(event_.types, &KinetoInput::type, &inputs);
    TakeTexts(event_.values, &KinetoInput::value, &inputs);
    return inputs;
  }

  const FileBytes& bytes_;
  KinetoTrace& trace_;
  KinetoVisitor* visitor_;
  Numbering names_;
  Numbering threads_;
  Numbering inputs_;
  OpenEvent event_;
  Place place_ = Place::kFile;
  // The key of the value that comes next; nullptr for one of no interest.
  const EventKey* event_key_ = nullptr;
  const ArgumentKey* argument_key_ = nullptr;
  std::string file_key_;
  std::string device_key_;     // of a device, or of distributedInfo
  std::string major_, minor_;  // of the device's compute capability
  bool found_events_ = false;
  bool at_arguments_ = false;  // their key came last
  bool in_arguments_ = false;
  int depth_ = 0;
  int events_depth_ = 0;
};

}  // namespace

KinetoTrace ReadKinetoTrace(const std::string& path) { return VisitKinetoTrace(path, nullptr); }

KinetoTrace VisitKinetoTrace(const std::string& path, KinetoVisitor* visitor) {
  KinetoTrace trace;
  FileBytes bytes(path);
  Listener listener(bytes, &trace, visitor);
  // A number is looked at where it matters, as its text.
  constexpr unsigned kHow =
      rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseValidateEncodingFlag;
  const rapidjson::ParseResult result = rapidjson::Reader().Parse<kHow>(bytes, listener);
  if (result.IsError() && bytes.done()) {
    throw InputError(bytes.place(), "", "ends before its JSON does: the trace was cut off",
                     "a trace that was written to its end");
  }
  if (result.IsError() || !bytes.done()) {
    InputPlace place = bytes.place();
    place.key = "byte " + std::to_string((result.IsError() ? result.Offset() : bytes.Tell()) + 1);
    throw InputError(place, "", "is not JSON", "a trace as export_chrome_trace() writes it");
  }
  if (!listener.found_events()) {
    throw InputError({path, 0, "traceEvents"}, "", "is missing",
                     "a trace as export_chrome_trace() of torch.profiler writes it");
  }
  return trace;
}

}  // namespace stepcast
