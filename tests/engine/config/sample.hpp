#pragma once
/// A valid config that tests change one thing of.

#include <string>
#include <utility>
#include <vector>

#include "engine/config.hpp"

namespace hfta::engine {

/// Text, whose lines the tests know by number.
extern const std::string kSample;

/// The same with an exported model, which shares lines up to "model:".
extern const std::string kExported;

/// A change of kSample: the first occurrence of one text becomes another.
using Change = std::pair<std::string, std::string>;

/// kSample (or another text) with changes. Fails the test if a text is not there.
std::string changed(const std::vector<Change>& changes, std::string text = kSample);

/// The message that parse_config throws for `text` (of a file called s.yaml); "" if it is accepted.
std::string message_of(const std::string& text, const std::vector<Override>& overrides = {});

/// Parsed as s.yaml.
StudyConfig parsed(const std::string& text, const std::vector<Override>& overrides = {});

}  // namespace hfta::engine
