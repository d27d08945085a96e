#include "predictor/web/records.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "data/record/input_error.h"

namespace stepcast::web {

// What a record whose members are counted would be initialised from.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

namespace {

// ---- The members of each record, in order. That none is missing is seen by Complete, below.

template <class... Members>
constexpr auto List(Members... members) {
  return std::tuple(members...);
}
constexpr auto MembersOf(const LinkFacts*) {
  using R = LinkFacts;
  return List(&R::bandwidth, &R::rtt, &R::loss, &R::congestion_control, &R::loss_burst,
              &R::transport, &R::others, &R::background, &R::oversubscription,
              &R::nodes_per_switch);
}
constexpr auto MembersOf(const Device*) {
  using R = Device;
  return List(&R::name, &R::title, &R::source, &R::aliases, &R::fp32, &R::tf32, &R::fp16, &R::bf16,
              &R::fp8, &R::memory, &R::memory_bandwidth, &R::device_link, &R::host_link,
              &R::power_w, &R::multiprocessors, &R::last_cache, &R::process_nm);
}
constexpr auto MembersOf(const Host*) { return List(&Host::name, &Host::link); }
constexpr auto MembersOf(const ParameterEstimate*) {
  using R = ParameterEstimate;
  return List(&R::scope, &R::name, &R::unit, &R::value, &R::log_sd, &R::low, &R::high,
              &R::prior_value, &R::prior_log_sd, &R::prior_source, &R::decided_by, &R::runs,
              &R::runs_nearer, &R::line);
}
constexpr auto MembersOf(const Scatter*) { return List(&Scatter::compute, &Scatter::sync); }
constexpr auto MembersOf(const CalibratedRange::BatchRange*) {
  using R = CalibratedRange::BatchRange;
  return List(&R::min, &R::max, &R::max_workers, &R::ran);
}
constexpr auto MembersOf(const Compression*) {
  return List(&Compression::method, &Compression::kept);
}
constexpr auto MembersOf(const CalibratedRange::Ran*) {
  using R = CalibratedRange::Ran;
  return List(&R::shard, &R::sharers, &R::local_batch, &R::bytes_per_parameter, &R::compress,
              &R::bucket);
}
constexpr auto MembersOf(const CalibratedRange::RateRange*) {
  using R = CalibratedRange::RateRange;
  return List(&R::min, &R::max);
}
constexpr auto MembersOf(const CalibratedRange::Exchange*) {
  using R = CalibratedRange::Exchange;
  return List(&R::strategy, &R::transport);
}
constexpr auto MembersOf(const CalibratedRange*) {
  using R = CalibratedRange;
  return List(&R::max_workers, &R::max_nodes, &R::max_devices_per_node, &R::local_batch,
              &R::bandwidth, &R::hosts_alone, &R::exchanges);
}
constexpr auto MembersOf(const Calibration::Source*) {
  return List(&Calibration::Source::file, &Calibration::Source::runs);
}
constexpr auto MembersOf(const Calibration*) {
  using R = Calibration;
  return List(&R::parameters, &R::log_covariance, &R::has_covariance, &R::alternatives,
              &R::residual_log_sd, &R::scatter, &R::repeat_log_sd, &R::sync_jitter, &R::range,
              &R::sources, &R::version);
}
constexpr auto MembersOf(const Cluster*) {
  using R = Cluster;
  return List(&R::name, &R::title, &R::source, &R::notes, &R::device, &R::device_facts, &R::nodes,
              &R::devices_per_node, &R::nics_per_node, &R::link, &R::device_link, &R::server_link,
              &R::hosts, &R::node_price_per_hour, &R::server_price_per_hour, &R::device_power_w,
              &R::device_idle_power_w, &R::node_power_w, &R::sources, &R::out_of_memory,
              &R::calibration);
}
constexpr auto MembersOf(const std::monostate*) { return List(); }
constexpr auto MembersOf(const Lengths2*) { return List(&Lengths2::height, &Lengths2::width); }
constexpr auto MembersOf(const Zeros2*) {
  return List(&Zeros2::top, &Zeros2::bottom, &Zeros2::left, &Zeros2::right);
}
constexpr auto MembersOf(const ConvolutionOp*) {
  using R = ConvolutionOp;
  return List(&R::channels, &R::input, &R::filters, &R::kernel, &R::stride, &R::dilation,
              &R::padding, &R::groups, &R::bias, &R::input_gradient);
}
constexpr auto MembersOf(const DenseOp*) {
  using R = DenseOp;
  return List(&R::positions, &R::inputs, &R::units, &R::bias, &R::input_gradient);
}
constexpr auto MembersOf(const BatchedProductOp*) {
  using R = BatchedProductOp;
  return List(&R::count, &R::rows, &R::columns, &R::depth);
}
constexpr auto MembersOf(const NormalizationOp*) {
  using R = NormalizationOp;
  return List(&R::kind, &R::channels, &R::input);
}
constexpr auto MembersOf(const ActivationOp*) {
  using R = ActivationOp;
  return List(&R::function, &R::rows, &R::columns);
}
constexpr auto MembersOf(const PoolingOp*) {
  using R = PoolingOp;
  return List(&R::kind, &R::channels, &R::input, &R::window, &R::stride, &R::padding);
}
constexpr auto MembersOf(const ElementwiseOp*) {
  using R = ElementwiseOp;
  return List(&R::kind, &R::channels, &R::positions, &R::broadcast);
}
constexpr auto MembersOf(const EmbeddingOp*) {
  using R = EmbeddingOp;
  return List(&R::rows, &R::features, &R::tokens);
}
constexpr auto MembersOf(const RecurrentOp*) {
  using R = RecurrentOp;
  return List(&R::cell, &R::positions, &R::inputs, &R::hidden, &R::directions);
}
constexpr auto MembersOf(const CopyOp*) { return List(&CopyOp::elements); }
constexpr auto MembersOf(const UpdateOp*) {
  return List(&UpdateOp::optimizer, &UpdateOp::parameters);
}
constexpr auto MembersOf(const AllocateOp*) { return List(&AllocateOp::elements); }
constexpr auto MembersOf(const Layer*) {
  using R = Layer;
  return List(&R::name, &R::kind, &R::tensors, &R::statistics, &R::forward_flop,
              &R::activation_bytes, &R::operation, &R::causal, &R::backward_time);
}
constexpr auto MembersOf(const Workload*) {
  using R = Workload;
  return List(&R::name, &R::title, &R::source, &R::parameters, &R::trainable_parameters,
              &R::gradient_bytes, &R::layers, &R::communication_only, &R::inputs_vary,
              &R::precision, &R::optimizer, &R::attention, &R::recompute, &R::as_others);
}
constexpr auto MembersOf(const serve::Inventory*) {
  using R = serve::Inventory;
  return List(&R::clusters, &R::workloads, &R::devices);
}

template <class R>
concept Record = requires {
  MembersOf(static_cast<const R*>(nullptr));
};

template <class R, std::size_t... I>
constexpr bool HasSoMany(std::index_sequence<I...> /*members*/) {
  return requires { R{(static_cast<void>(I), Anything())...}; };
}
template <Record R>
constexpr bool Complete() {
  constexpr std::size_t size = std::tuple_size_v<decltype(MembersOf(static_cast<R*>(nullptr)))>;
  return HasSoMany<R>(std::make_index_sequence<size>()) &&
         !HasSoMany<R>(std::make_index_sequence<size + 1>());
}
template <class... Operations>
constexpr bool AllComplete(const std::variant<Operations...>* /*operation*/) {
  return ((std::is_same_v<Operations, std::monostate> || Complete<Operations>()) && ...);
}
static_assert(AllComplete(static_cast<const Operation*>(nullptr)) && Complete<Lengths2>() &&
              Complete<Zeros2>());
static_assert(Complete<LinkFacts>() && Complete<Device>() && Complete<Host>() &&
              Complete<ParameterEstimate>() && Complete<Scatter>() &&
              Complete<CalibratedRange::BatchRange>() && Complete<Compression>() &&
              Complete<CalibratedRange::Ran>() && Complete<CalibratedRange::RateRange>() &&
              Complete<CalibratedRange::Exchange>() && Complete<CalibratedRange>() &&
              Complete<Calibration::Source>() && Complete<Calibration>() && Complete<Cluster>() &&
              Complete<Layer>() && Complete<Workload>() && Complete<serve::Inventory>());

template <class T>
inline constexpr bool kIsPlain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Writer {
 public:
  std::string Take() { return std::move(bytes_); }

  template <class T>
  requires kIsPlain<T>
  void operator()(const T& value) { Copy(&value, sizeof value); }
  void operator()(const std::string& text) {
    (*this)(static_cast<std::uint32_t>(text.size()));
    Copy(text.data(), text.size());
  }
  template <class D>
  void operator()(const Quantity<D>& value) {
    (*this)(value.si());
  }
  template <class T>
  void operator()(const std::optional<T>& value) {
    (*this)(value.has_value());
    if (value) (*this)(*value);
  }
  template <class A, class B>
  void operator()(const std::pair<A, B>& pair) {
    (*this)(pair.first);
    (*this)(pair.second);
  }
  template <class T>
  void operator()(const std::vector<T>& values) {
    All(values);
  }
  template <class T>
  void operator()(const std::set<T>& values) {
    All(values);
  }
  template <class K, class V>
  void operator()(const std::map<K, V>& values) {
    All(values);
  }
  void operator()(const Eigen::MatrixXd& matrix) {
    (*this)(static_cast<std::uint32_t>(matrix.rows()));
    for (Eigen::Index i = 0; i < matrix.size(); ++i) (*this)(matrix.data()[i]);
  }
  void operator()(const Operation& operation) {
    (*this)(static_cast<std::uint32_t>(operation.index()));
    std::visit([this](const auto& one) { (*this)(one); }, operation);
  }
  template <Record R>
  void operator()(const R& record) {
    std::apply([&](auto... member) { ((*this)(record.*member), ...); },
               MembersOf(static_cast<const R*>(nullptr)));
  }

 private:
  template <class Values>
  void All(const Values& values) {
    (*this)(static_cast<std::uint32_t>(values.size()));
    for (const auto& value : values) (*this)(value);
  }
  void Copy(const void* from, std::size_t size) {
    bytes_.append(static_cast<const char*>(from), size);
  }

  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }
  [[noreturn]] static void Refuse() {
    throw InputError({"", 0, "records"}, "", "are not those of this build",
                     "a page that `stepcast page` has written");
  }

  template <class T>
  requires kIsPlain<T>
  void operator()(T* value) {
    if constexpr (std::is_same_v<T, bool>) {
      unsigned char byte = 0;
      (*this)(&byte);
      if (byte > 1) Refuse();
      *value = byte == 1;
    } else {
      Copy(value, sizeof *value);
    }
  }
  void operator()(std::string* text) {
    text->resize(Size(1));
    Copy(text->data(), text->size());
  }
  template <class D>
  void operator()(Quantity<D>* value) {
    double si = 0;
    (*this)(&si);
    *value = Quantity<D>::FromSi(si);
  }
  template <class T>
  void operator()(std::optional<T>* value) {
    bool has = false;
    (*this)(&has);
    value->reset();
    if (has) (*this)(&value->emplace());
  }
  template <class T>
  void operator()(std::vector<T>* values) {
    values->resize(Size(1));
    for (T& value : *values) (*this)(&value);
  }
  template <class T>
  void operator()(std::set<T>* values) {
    for (std::size_t left = Size(1); left > 0; --left) {
      T value;
      (*this)(&value);
      values->insert(std::move(value));
    }
  }
  template <class K, class V>
  void operator()(std::map<K, V>* values) {
    for (std::size_t left = Size(1); left > 0; --left) {
      std::pair<K, V> entry;
      (*this)(&entry.first);
      (*this)(&entry.second);
      values->insert(std::move(entry));
    }
  }
  void operator()(Eigen::MatrixXd* matrix) {
    const std::size_t rows = Size(1);
    if (std::uint64_t{rows} * rows > bytes_.size() / sizeof(double)) Refuse();
    matrix->resize(static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(rows));
    for (Eigen::Index i = 0; i < matrix->size(); ++i) (*this)(&matrix->data()[i]);
  }
  void operator()(Operation* operation) {
    const std::size_t index = Size(0);
    const bool known =
        Choose(index, operation, std::make_index_sequence<std::variant_size_v<Operation>>());
    if (!known) Refuse();
    std::visit([this](auto& one) { (*this)(&one); }, *operation);
  }
  template <Record R>
  void operator()(R* record) {
    std::apply([&](auto... member) { ((*this)(&(record->*member)), ...); },
               MembersOf(static_cast<const R*>(nullptr)));
  }

 private:
  template <std::size_t... I>
  static bool Choose(std::size_t index, Operation* operation, std::index_sequence<I...> /*all*/) {
    return ((index == I && (operation->emplace<I>(), true)) || ...);
  }
  // A number of things that take at least `each` bytes.
  std::size_t Size(std::size_t each) {
    std::uint32_t size = 0;
    (*this)(&size);
    if (size * each > bytes_.size()) Refuse();
    return size;
  }
  void Copy(void* to, std::size_t size) {
    if (bytes_.size() < size) Refuse();
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }

  std::string_view bytes_;
};

constexpr std::string_view kMagic = "stepcast records " STEPCAST_VERSION "\n";

// FNV-1a of 64 bits (Fowler, Noll, Vo): records are taken as they lie, so that those which were
// damaged on their way must be known before they are read.
std::uint64_t Digest(std::string_view bytes) {
  std::uint64_t digest = 0xcbf29ce484222325U;
  for (const char byte : bytes) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  }
  return digest;
}

}  // namespace

std::string WriteRecords(const serve::Inventory& inventory) {
  Writer writer;
  writer(inventory);
  const std::string records = writer.Take();
  Writer digest;
  digest(Digest(records));
  return std::string(kMagic) + digest.Take() + records;
}

serve::Inventory ReadRecords(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) Reader::Refuse();
  bytes.remove_prefix(kMagic.size());
  std::uint64_t digest = 0;
  if (bytes.size() < sizeof digest) Reader::Refuse();
  Reader(bytes.substr(0, sizeof digest))(&digest);
  bytes.remove_prefix(sizeof digest);
  if (digest != Digest(bytes)) Reader::Refuse();
  Reader reader(bytes);
  serve::Inventory inventory;
  reader(&inventory);
  if (!reader.at_end()) Reader::Refuse();
  return inventory;
}

}  // namespace stepcast::web
