#include "microbench/compute/cuda_layer.h"

namespace stepcast {

std::size_t CudaLayer::AddNumbers(std::int64_t elements) {
  contents_.push_back({Filling::kNumbers, elements, type_, -1, 1, 1});
  return layout_.Add(elements, ElementBytes(type_));
}
std::size_t CudaLayer::AddFloats(std::int64_t elements, float low, float high) {
  contents_.push_back({Filling::kNumbers, elements, ElementType::kFloat, low, high, 1});
  return layout_.Add(elements, sizeof(float));
}
std::size_t CudaLayer::AddIndices(std::int64_t elements, std::int64_t limit) {
  contents_.push_back({Filling::kIndices, elements, ElementType::kFloat, 0, 0, limit});
  return layout_.Add(elements, sizeof(std::int64_t));
}
std::size_t CudaLayer::AddZeros(std::size_t bytes) {
  contents_.push_back({});
  return layout_.Add(static_cast<std::int64_t>(bytes), 1);
}

void CudaLayer::Fill(const CudaSet& set) const {
  for (std::size_t i = 0; i < contents_.size(); ++i) {
    const Contents& c = contents_[i];
    switch (c.filling) {
      case Filling::kNumbers:
        // The padding too: kernels read it, and so it must be defined.
        Check(cudaMemsetAsync(set.at(i), 0, layout_.tensors()[i].bytes, stream()), "fill");
        FillUniform(set.at(i), c.elements, c.type, c.low, c.high, stream());
        break;
      case Filling::kIndices:
        FillIndices(set.at<std::int64_t>(i), c.elements, c.limit, stream());
        break;
      case Filling::kZeros:
        Check(cudaMemsetAsync(set.at(i), 0, layout_.tensors()[i].bytes, stream()), "fill");
        break;
    }
  }
}

}  // namespace stepcast
