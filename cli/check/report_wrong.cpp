// Where an array is wrong, as text and as JSON.
#include <cmath>

#include <nlohmann/json.hpp>

#include "cli/check/check.hpp"
#include "core/base/error.hpp"
#include "core/base/tensor.hpp"

namespace attn::cli {
namespace {

using nlohmann::ordered_json;

/// "head 1", "rows 8-9".
std::string side_text(const WrongElements::Side& side, ArrayId array) {
    const bool is_one = side.first == side.last;
    std::string name = side.axis;
    if (name == "batch")
        name = is_one ? "batch entry" : "batch entries";
    else if (name == "heads")
        name = is_one ? "head" : "heads";
    else if (name.find('*') == std::string::npos)
        name = concat(name == axis_name(array.row().axes[2]) ? "row" : "column", is_one ? "" : "s");
    return is_one ? concat(name, " ", side.first) : concat(name, " ", side.first, "-", side.last);
}

/// ", all 0", ", 3 of them NaN".
std::string values_text(const WrongElements& wrong) {
    const auto share = [&](std::size_t count, const std::string& value) {
        const bool are_all = count == wrong.count;
        return count == 0 ? ""
               : are_all  ? concat(wrong.count == 1 ? ", " : ", all ", value)
                          : concat(", ", count, " of them ", value);
    };
    const bool have_name = wrong.common == 0 || std::isnan(wrong.common);
    return share(wrong.zeros, "0") + share(wrong.nan, "NaN") +
           share(have_name ? 0 : wrong.alike, brief_number(wrong.common));
}

}  // namespace

std::string wrong_text(const ArrayJudgement& array) {
    const WrongElements& wrong = *array.wrong;
    std::string box;
    for (const WrongElements::Side& side : wrong.box)
        if (side.last - side.first + 1 != side.size)
            box += (box.empty() ? " only in " : ", ") + side_text(side, array.id);
    std::string text =
        concat("wrong", box, box.empty() ? " in " : ": ", wrong.count, " of ", wrong.of,
               wrong.of == 1 ? " element" : " elements", values_text(wrong));
    if (wrong.largest && wrong.largest->index != array.first->index)
        text += concat("; the largest error is at ", index_text(wrong.largest->index), ": ",
                       brief_number(wrong.largest->theirs, 9), ", expected ",
                       brief_number(wrong.largest->truth, 9));
    return text;
}

ordered_json wrong_json(const WrongElements& wrong) {
    ordered_json box = ordered_json::array();
    for (const WrongElements::Side& side : wrong.box)
        box.push_back({{"axis", side.axis.empty() ? ordered_json() : ordered_json(side.axis)},
                       {"first", side.first},
                       {"last", side.last}});
    ordered_json entry{{"count", wrong.count}, {"of", wrong.of},   {"box", std::move(box)},
                       {"zeros", wrong.zeros}, {"nan", wrong.nan}, {"alike", nullptr},
                       {"largest", nullptr}};
    if (wrong.alike != 0)
        entry["alike"] = {{"value", element_json(wrong.common)}, {"count", wrong.alike}};
    if (wrong.largest)
        entry["largest"] = {{"index", wrong.largest->index},
                            {"found", element_json(wrong.largest->theirs)},
                            {"expected", element_json(wrong.largest->truth)}};
    return entry;
}

}  // namespace attn::cli
