// Where an array is wrong, as text and as JSON.
#include <algorithm>
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
std::string values_text(const WrongElements& where) {
    const auto share = [&](std::size_t count, const std::string& value) {
        const bool are_all = count == where.count;
        return count == 0 ? ""
               : are_all  ? concat(where.count == 1 ? ", " : ", all ", value)
                          : concat(", ", count, " of them ", value);
    };
    const bool have_name = where.common == 0 || std::isnan(where.common);
    return share(where.zeros, "0") + share(where.nan, "NaN") +
           share(have_name ? 0 : where.alike, brief_number(where.common));
}

}  // namespace

std::string wrong_text(const ArrayJudgement& array) {
    const WrongElements& where = *array.where;
    std::string box;
    for (const WrongElements::Side& side : where.box)
        if (side.last - side.first + 1 != side.size)
            box += (box.empty() ? " only in " : ", ") + side_text(side, array.id);
    std::string text =
        concat("wrong", box, box.empty() ? " in " : ": ", where.count, " of ", where.of,
               where.of == 1 ? " element" : " elements", values_text(where));
    if (where.largest && where.largest->index != array.first->index)
        text += concat("; the largest error is at ", index_text(where.largest->index), ": ",
                       brief_number(where.largest->theirs, 9), ", expected ",
                       brief_number(where.largest->truth, 9));
    return text;
}

ordered_json wrong_json(const WrongElements& where) {
    ordered_json box = ordered_json::array();
    for (const WrongElements::Side& side : where.box)
        box.push_back({{"axis", side.axis.empty() ? ordered_json() : ordered_json(side.axis)},
                       {"first", side.first},
                       {"last", side.last}});
    ordered_json entry{{"count", where.count}, {"of", where.of},   {"box", std::move(box)},
                       {"zeros", where.zeros}, {"nan", where.nan}, {"alike", nullptr},
                       {"largest", nullptr}};
    if (where.alike != 0)
        entry["alike"] = {{"value", element_json(where.common)}, {"count", where.alike}};
    if (where.largest)
        entry["largest"] = {{"index", where.largest->index},
                            {"found", element_json(where.largest->theirs)},
                            {"expected", element_json(where.largest->truth)}};
    return entry;
}

}  // namespace attn::cli
