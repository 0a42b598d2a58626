// What the question of a result asked for, as opposed to what followed from that.
#include <algorithm>
#include <ranges>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/question/layer_source.hpp"
#include "cli/question/operands.hpp"
#include "core/base/error.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {
namespace {

using io::member;
using nlohmann::json;

constexpr std::size_t max_axis = std::size_t{1} << 31;

/// Reads the shapes that operands_json() writes.
class LayoutReader {
public:
    LayoutReader(const json& layout, const std::string& location)
        : layout_(layout), operands_(member(layout, "operands")), location_(location) {}

    OperandShapes read(Mode mode) const {
        OperandShapes shapes;
        const bool projects = row_of(mode).projects(find("query", 2, 4).has_value());
        if (projects) shapes.inputs = required("inputs", 2, 3);
        for (const OperandSpec& rule : operand_rules()) {
            if ((rule.modes & in(mode)) == 0) continue;
            Shape& shape = shapes.*shape_of_operand(rule.key);
            shape = rule.is_required(projects)
                        ? required(rule.key, rule.lowest_rank, rule.highest_rank)
                        : find(rule.key, rule.lowest_rank, rule.highest_rank).value_or(Shape{});
        }
        for (const MaskOperandRow& row : mask_operand_rows)
            shapes.*row.is_boolean = is_boolean(row.key);
        if (!projects) return shapes;
        shapes.has_token_ids = find("token_ids", 1, 1).has_value();
        if (const auto norm = find("norm", 1, 1)) shapes.norm = norm->front();
        if (find("W_query", 3, 3))
            shapes.weights = {projection("query"), projection("key"), projection("value"),
                              find("W_out", 3, 3) ? std::optional(projection("out")) : std::nullopt,
                              member(operands_, "head_norms") == json(true)};
        return shapes;
    }

private:
    template <class... Parts>
    [[noreturn]] void fail_in_layout(const Parts&... message) const {
        throw Error(ErrorKind::input, location_, message...);
    }

    /// The shape with this name and one of these ranks; nothing if there is none.
    std::optional<Shape> find(const std::string& name, std::size_t min_rank,
                              std::size_t max_rank) const {
        const json sizes = member(operands_, name);
        if (sizes.is_null()) return std::nullopt;
        const auto is_size = [](std::size_t size) { return size > 0 && size <= max_axis; };
        auto shape = io::unsigned_list(sizes);
        if (!shape || shape->size() < min_rank || shape->size() > max_rank ||
            !std::all_of(shape->begin(), shape->end(), is_size))
            fail_in_layout("layout.operands." + name + " is " + io::shortened(sizes.dump()) +
                           "; expected a shape of rank " + std::to_string(min_rank) +
                           (min_rank == max_rank ? "" : " to " + std::to_string(max_rank)));
        return shape;
    }

    Shape required(const std::string& name, std::size_t min_rank, std::size_t max_rank) const {
        if (auto shape = find(name, min_rank, max_rank)) return *std::move(shape);
        fail_in_layout("layout.operands has no " + name + "; expected its shape");
    }

    bool is_boolean(const char* mask) const {
        const json names = member(layout_, "boolean");
        return names.is_array() && std::ranges::find(names, mask) != names.end();
    }

    ProjectionShape projection(const std::string& name) const {
        const Shape weight = required("W_" + name, 3, 3);
        const json axes = member(member(layout_, "axes"), "W_" + name);
        const bool in_out = axes.is_array() && !axes.empty() && axes.back() == "d_out";
        return {weight[0], weight[2], weight[1], find("b_" + name, 2, 2).has_value(), in_out};
    }

    const json& layout_;
    const json operands_;
    const std::string& location_;
};

/// The config of a question with these settings and the operands of a result; nothing if they do
/// not fit together.
class Resolver {
public:
    Resolver(const io::ResultHead& head, const std::string& location, const std::string& model)
        : head_(head), location_(location), model_(model) {}

    json operator()(const json& config) {
        io::ResultHead head = head_;
        head.config = std::make_shared<const json>(config);
        try {
            Request request = request_of_result(head, location_);
            const auto ids =
                io::unsigned_list(member(member(*head.layout, "operands"), "token_ids"));
            if (ids && !ids->empty() && !request.text)
                request.token_ids.resize(std::min(ids->front(), max_axis));
            if (!model_.empty())
                request = open_layer_source(request, models_, model_)->with_model(request);
            request = with_text(std::move(request));
            const OperandShapes operands =
                shapes_of_layout(*head.layout, request.settings.mode, location_);
            request.settings = make_plan(std::move(request.settings), operands).config;
            return io::parse_own(config_of(request));
        } catch (const Error&) {
            return {};
        }
    }

private:
    const io::ResultHead& head_;
    const std::string& location_;
    const std::string& model_;
    io::LoadedModels models_;
};

}  // namespace

OperandShapes shapes_of_layout(const json& layout, Mode mode, const std::string& location) {
    return LayoutReader(layout, location).read(mode);
}

json asked_config(const io::ResultHead& head, const std::string& location,
                  const std::string& model) {
    json asked = *head.config;
    Resolver resolve(head, location, model);
    const json all = resolve(asked);
    if (all.is_null()) return asked;
    const auto without_followers = [&](std::string_view first) {
        json config = asked;
        const auto leave_out = [&](const std::string& key) {
            json fewer = config;
            if (fewer.erase(key) != 0 && resolve(fewer) == all) config = std::move(fewer);
        };
        leave_out(std::string(first));
        // Where the input comes from and the form of the file stay.
        for (const Option& option : options() | std::views::reverse)
            if (constexpr std::string_view kept[] = {"text", "rand", "randn", "weights", "format"};
                std::ranges::find(kept, option.key) == std::end(kept))
                leave_out(option.key);
        return config;
    };
    // What follows comes after what it follows from, but for d_out, which also follows from d_v.
    json by_order = without_followers(""), by_values = without_followers("d_out");
    asked = by_values.size() < by_order.size() ? std::move(by_values) : std::move(by_order);
    json every = asked;
    every["emit"] = {"all"};
    return asked.contains("emit") && resolve(every) == all ? every : asked;
}

}  // namespace attn::cli
