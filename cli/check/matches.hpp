// The conventions that reproduce wrong arrays, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/check/search.hpp"

namespace attn::cli {

/// "--rope interleaved and --window 127,0 (asked: half, 128,0)".
std::string changes_text(const Match& match);

/// The best one, then one line for each set of conventions that others change; one that says so if
/// there is none.
std::string matches_text(const std::vector<Match>& matches);

nlohmann::ordered_json match_json(const Match& match);

}  // namespace attn::cli
