#pragma once
/// Rearranging matrices for kernels.

#include <cstdint>

namespace hfta::fusion::cpu {

/// `to` [k, ldt >= columns], zeros behind the columns, = `from` [k, ld >= columns], or, transposed, of `from` [columns,
/// ld >= k].
void pack_panel(const float* from, std::int64_t ld, bool transposed, std::int64_t k, std::int64_t columns, float* to,
                std::int64_t ldt);
void pack_panel(const double* from, std::int64_t ld, bool transposed, std::int64_t k, std::int64_t columns, double* to,
                std::int64_t ldt);

/// `to` [columns, ldt >= rows] = the transpose of `from` [rows, ld >= columns].
void transpose(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, float* to,
               std::int64_t ldt);
void transpose(const double* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, double* to,
               std::int64_t ldt);

}  // namespace hfta::fusion::cpu
