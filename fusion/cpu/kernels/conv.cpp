#include "fusion/cpu/kernels/conv.hpp"

#include <algorithm>

#include "fusion/cpu/kernels/rows.hpp"

namespace hfta::fusion::cpu {
namespace {

// A panel of the weights, 64 outputs by all taps of a block of inputs, is read again for every few pixels: with at most
// 1152 rows, 288 KiB of float, it stays in the second cache.
constexpr std::int64_t kPanel = 64, kRows = 1152;

std::int64_t block_of(std::int64_t inputs, std::int64_t taps) {
  const std::int64_t block = std::max<std::int64_t>(kRows / taps / 16 * 16, 16);
  return inputs <= block * 3 / 2 ? inputs : block;
}

}  // namespace

template <typename T>
TapProduct<T>::TapProduct(const ConvShape& s, bool backward, bool add)
    : g_(backward ? backward_taps(s) : forward_taps(s)),
      groups_(s.groups),
      elements_(s.taps()),
      inputs_((backward ? s.o : s.c) / s.groups),
      outputs_((backward ? s.c : s.o) / s.groups),
      panel_(std::min(kPanel, outputs_)),
      block_(block_of(inputs_, elements_)),
      kept_(images_at_once(s) < s.n),
      backward_(backward),
      add_(add),
      few_(!backward && has_few_channels(s)),
      source_(g_, images_at_once(s), inputs_ * groups_, groups_ == 1 ? block_ : inputs_ * groups_) {
  ld_ = few_ ? (panel_ + kFewOutputs - 1) / kFewOutputs * kFewOutputs : panel_;
  few_ ? make_row() : make_kernels();
  piece_size_ = elements_ * block_ * ld_;
  if (kept_) pieces_ = groups_ * ((outputs_ + panel_ - 1) / panel_) * ((inputs_ + block_ - 1) / block_);
  count_rows();
}

template <typename T>
void TapProduct<T>::count_rows() {
  std::int64_t terms = 0;  // pixels times taps
  for (const Phase& phase : g_.phases) {
    rows_ += phase.count[0];
    terms += phase.count[0] * phase.count[1] * static_cast<std::int64_t>(phase.taps.size());
  }
  products_ = terms / std::max<std::int64_t>(rows_, 1) * block_ * panel_;
}

template <typename T>
void TapProduct<T>::make_row() {
  const Phase& phase = g_.phases.front();
  PhaseKernels kernels;
  for (const Tap& tap : phase.taps) {
    kernels.elements.push_back(tap.element);
    for (std::int64_t c = 0; c < inputs_; ++c) row_.terms.push_back(source_.offset(tap) + c);
  }
  row_.pixels = phase.count[1];
  row_.step = source_.strides().pixel * g_.source_step[1];
  row_.width = ld_;
  row_.ld = outputs_ * g_.result_step[1];
  phases_.push_back(std::move(kernels));
}

template <typename T>
void TapProduct<T>::make_kernels() {
  std::int64_t taps = 0;
  for (const Phase& phase : g_.phases) {
    PhaseKernels kernels;
    kernels.first_tap = taps;
    for (const Tap& tap : phase.taps) {
      const auto at = static_cast<unsigned long long>(taps++ - kernels.first_tap) *
                      static_cast<unsigned long long>(block_ * panel_) * sizeof(T);
      kernels.elements.push_back(tap.element);
      kernels.weights.push_back(at);
      kernels.sources.push_back(static_cast<unsigned long long>(source_.offset(tap)) * sizeof(T));
    }
    for (const bool narrow : {false, true}) {
      for (const bool shorter : {false, true}) {
        for (const bool adds : {false, true}) {
          const std::int64_t columns = narrow ? outputs_ % panel_ : panel_;
          const std::int64_t depth = shorter ? inputs_ % block_ : block_;
          if (columns == 0 || depth == 0 || phase.taps.empty()) continue;
          kernels.micro[narrow][shorter][adds] =
              batch_reduce_kernel<T>({.rows = phase.count[1],
                                      .columns = columns,
                                      .depth = depth,
                                      .lda = panel_,
                                      .ldb = source_.strides().pixel * g_.source_step[1],
                                      .ldc = outputs_ * groups_ * g_.result_step[1],
                                      .add = adds});
        }
      }
    }
    phases_.push_back(std::move(kernels));
  }
}

template <typename T>
std::int64_t TapProduct<T>::scratch(int threads) const {
  return threads * turning_scratch(elements_, panel_) + source_.scratch();
}

// Calls visit(piece, its turned weights).
template <typename T>
template <typename Visit>
void TapProduct<T>::for_each_piece(T* turned, const Visit& visit) const {
  Piece piece;
  for (piece.group = 0; piece.group < groups_; ++piece.group) {
    for (piece.panel = 0; piece.panel < outputs_; piece.panel += panel_) {
      for (piece.block = 0; piece.block < inputs_; piece.block += block_) {
        visit(piece, turned);
        if (kept_) turned += piece_size_;
      }
    }
  }
}

template <typename T>
void TapProduct<T>::turn(const Call& call) const {
  if (kept_) for_each_piece(call.turned, [&](const Piece& piece, T* turned) { turn_piece(piece, call, turned); });
}

template <typename T>
void TapProduct<T>::operator()(const Call& call) const {
  const int threads = call.team == nullptr ? 1 : call.team->threads();
  T* const copies = call.scratch + threads * turning_scratch(elements_, panel_);
  const T* const from = call.source + call.first * g_.source[0] * g_.source[1] * inputs_ * groups_;
  const T* const source = source_.prepare(call.team, from, call.images, copies);
  for_each_piece(call.turned, [&](const Piece& piece, T* turned) {
    if (!kept_) turn_piece(piece, call, turned);
    apply(piece, call, source, turned);
  });
}

template <typename T>
void TapProduct<T>::turn_piece(const Piece& piece, const Call& call, T* to) const {
  const std::int64_t inputs = std::min(block_, inputs_ - piece.block);
  Turning turning{.columns = std::min(panel_, outputs_ - piece.panel),
                  .ld = ld_,
                  .stride = (backward_ ? outputs_ : inputs_) * elements_,
                  .elements = elements_,
                  .tap_stride = block_ * ld_};
  const T* const group = call.weight + piece.group * inputs_ * outputs_ * elements_;
  const T* const from = backward_ ? group + (piece.block * outputs_ + piece.panel) * elements_
                                  : group + (piece.panel * inputs_ + piece.block) * elements_;
  const std::int64_t step = backward_ ? turning.stride : elements_;  // elements from one input to the next
  if (few_) std::fill_n(to, piece_size_, T{0});
  share(call.team, stretches_of(inputs, elements_ * panel_, kTurnedAtOnce),
        [&](std::int64_t first, std::int64_t count, int thread) {
          Turning some = turning;
          some.k = count;
          for (const PhaseKernels& phase : phases_) {
            turn_weights(some, !backward_, phase.elements.data(), static_cast<std::int64_t>(phase.elements.size()),
                         from + first * step, to + phase.first_tap * block_ * panel_ + first * ld_,
                         call.scratch + thread * turning_scratch(elements_, panel_));
          }
        });
}

template <typename T>
void TapProduct<T>::apply(const Piece& piece, const Call& call, const T* source, const T* weights) const {
  share(call.team, stretches_of(call.images * rows_, products_, 1, kStretchProducts),
        [&](std::int64_t first, std::int64_t count, int) {
          Place at{first / rows_, 0, first % rows_};
          for (; at.row >= g_.phases[at.phase].count[0]; ++at.phase) at.row -= g_.phases[at.phase].count[0];
          for (std::int64_t r = 0; r < count; ++r) {
            apply_row(piece, at, call, source, weights);
            if (++at.row < g_.phases[at.phase].count[0]) continue;
            at.row = 0;
            if (++at.phase < g_.phases.size()) continue;
            at.phase = 0;
            ++at.image;
          }
        });
}

template <typename T>
void TapProduct<T>::apply_row(const Piece& piece, const Place& at, const Call& call, const T* source,
                              const T* weights) const {
  const bool narrow = outputs_ - piece.panel < panel_, shorter = inputs_ - piece.block < block_;
  const bool adds = add_ || piece.block > 0, last = piece.block + block_ >= inputs_;
  const std::int64_t width = std::min(panel_, outputs_ - piece.panel), all = outputs_ * groups_;
  const std::int64_t channel = piece.group * outputs_ + piece.panel, ld = g_.result_step[1] * all;
  const Source::Strides& strides = source_.strides();
  const Phase& phase = g_.phases[at.phase];
  const PhaseKernels& kernels = phases_[at.phase];
  const T* const block =
      source + (groups_ == 1 ? piece.block / block_ * strides.block : piece.group * inputs_ + piece.block);
  const T* const from = block + at.image * strides.image + at.row * strides.row;
  T* const image = call.result + (call.first + at.image) * g_.result[0] * g_.result[1] * all + channel;
  T* const row = image + ((phase.begin[0] + at.row * g_.result_step[0]) * g_.result[1] + phase.begin[1]) * all;
  const T* const bias = call.bias == nullptr ? nullptr : call.bias + channel;
  if (few_) return few_forward(row_, from, weights, bias, call.relu, adds, width, row);
  const unsigned long long count = kernels.sources.size();
  if (count > 0) {
    kernels.micro[narrow][shorter][adds](weights + kernels.first_tap * block_ * panel_, from, row, &count,
                                         kernels.weights.data(), kernels.sources.data());
  } else if (!adds) {
    for (std::int64_t w = 0; w < phase.count[1]; ++w) std::fill_n(row + w * ld, width, T{0});
  }
  if (last && (bias != nullptr || call.relu)) add_bias(row, ld, phase.count[1], width, bias, call.relu);
}

template class TapProduct<float>;
template class TapProduct<double>;

}  // namespace hfta::fusion::cpu
