#pragma once
/// One step of a recurrent layer for N samples, without its matrix products: the equations of torch.nn.LSTM, GRU and
/// RNN. All matrices are row-major without gaps.

#include <cstdint>

namespace hfta::fusion::cpu {

enum class Cell { kLstm, kGru, kTanh, kRelu };

/// Gates whose sums lie side by side: 4 (input, forget, cell, output), 3 (reset, update, new) or 1.
[[nodiscard]] std::int64_t gates_of(Cell cell);

/// T: float, double. G: gates_of(cell).
template <typename T>
struct CellStep {
  std::int64_t n = 0, h = 0;  ///< Samples, hidden features.
  T* gates = nullptr;   ///< [N, G H]: sums of the products, without `bias`; becomes the gates. GRU: the input's part.
  T* hidden = nullptr;  ///< GRU: [N, 3 H], the hidden state's part of the sums, to which `bias` is added.
  const T* bias = nullptr;      ///< [G H], of the hidden state's part; null: none.
  const T* h_before = nullptr;  ///< [N, H]
  const T* c_before = nullptr;  ///< LSTM: [N, H]
  T* h_after = nullptr;         ///< [N, H]
  T* c_after = nullptr;         ///< LSTM: [N, H]
};
void advance(Cell cell, const CellStep<float>& step);
void advance(Cell cell, const CellStep<double>& step);

/// The way back: from the whole gradient of h_after and c_after to that of the sums.
template <typename T>
struct CellGradient {
  CellStep<T> step;        ///< The step as advance() left it.
  const T* dh = nullptr;   ///< [N, H], of h_after.
  const T* dc = nullptr;   ///< LSTM: [N, H], of c_after beyond what comes through h_after.
  T* dgates = nullptr;     ///< [N, G H], of the sums (GRU: of the input's part); written.
  T* dhidden = nullptr;    ///< GRU: [N, 3 H], of the hidden state's part; written.
  T* dh_before = nullptr;  ///< GRU: [N, H], to which what does not go through sums is added.
  T* dc_before = nullptr;  ///< LSTM: [N, H], added to.
};
void retreat(Cell cell, const CellGradient<float>& gradient);
void retreat(Cell cell, const CellGradient<double>& gradient);

}  // namespace hfta::fusion::cpu
