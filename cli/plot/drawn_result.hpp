// Turns a result that is read back into a report, as if attn had just computed it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/pictures.hpp"
#include "cli/plot/plain_array.hpp"
#include "core/operator/mask.hpp"
#include "core/plan/plan.hpp"
#include "io/plot/heat_map.hpp"
#include "io/read/result_view.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// The mode of statistics of `attn scan`: their arrays are (layers, heads).
inline constexpr std::string_view scan_mode = "scan";

/// The plan of a result that describes its layout; empty for plain arrays. Errors: kind input if
/// the layout contradicts the config.
std::optional<Plan> layout_plan(const io::ResultView& result);

/// Reads all arrays, of a model's result those of the given layers, with the axes of the layout.
/// Plain arrays have the axes of attn's array of their name and rank, or rows and columns.
/// FlagValue tokens label the rows of a plain array, and its columns if there is one token per
/// column. A note on CSV goes to `notes`. Errors: kind input if shapes or labels do not fit.
io::Report read_report(const io::ResultView& result, const std::optional<Plan>& plan,
                       const Naming& given, ThreadPool& workers, std::vector<std::string>& notes);

/// What the settings of a result mask, in each of its batch entries; null for plain arrays.
struct LayerRules {
    std::shared_ptr<const Mask> rules;
    std::size_t batch = 1;
};
LayerRules rules_of(const std::optional<Plan>& plan);

/// The masks of a model's attentions in these layers: those of each layer's settings, and of
/// padding. Errors: kind input if a layer's description is malformed.
std::vector<LayerMask> masks_of_model(const io::ResultHead& head,
                                      const std::vector<std::size_t>& layers,
                                      const std::string& place);

/// Which cells are masked: by the report's own mask, or else by the rules of its layers. `layers`
/// has one entry per layer if the first axis is "layer", otherwise one entry. The report must stay
/// at its address. Errors: kind input if the mask has other queries and keys than another array.
io::MaskedOf masked_in(const io::Report& report, std::vector<LayerRules> layers,
                       const std::string& place);

}  // namespace attn::cli
