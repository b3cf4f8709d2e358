#pragma once
/// What the stack traces of an archive's calls say: `File "/home/me/model.py", line 12, in forward`, the line of code,
/// the next frame, from the outermost to the innermost.

#include <cstddef>
#include <string>

namespace hfta::fusion::pt2 {

/// "model.py:12": the innermost frame of the user's own code, or at least of a layer; "" if there is none.
[[nodiscard]] std::string where_from(const std::string& trace);

/// "model.py:12: Spike.apply": where the forward of a torch.autograd.Function made the call; "" where none is seen.
/// `modules`: the number of modules, but for torch's own, that the call was made within. Every frame of a `forward` of
/// the user's is that of such a module, of a `forward` that is called by its name, or of a Function. A module whose
/// forward has another name may hide one; one that is made within a forward is taken for one.
[[nodiscard]] std::string function_from(const std::string& trace, std::size_t modules);

}  // namespace hfta::fusion::pt2
