// What the question of a result asked for, as opposed to what followed from that.
#include <algorithm>
#include <utility>

#include "cli/question/operands.hpp"
#include "cli/request/field.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {
namespace {

using io::member;
using nlohmann::json;

/// So that sizes in a damaged file do not overflow.
constexpr std::size_t max_axis = std::size_t{1} << 31;

/// Reads the shapes that operands_json() writes.
class LayoutReader {
public:
    LayoutReader(const json& layout, const std::string& location)
        : layout_(layout), operands_(member(layout, "operands")), location_(location) {}

    OperandShapes read(Mode mode) const {
        OperandShapes shapes;
        const bool projects = row_of(mode).projects(find("query", 2, 4).has_value());
        if (projects) shapes["inputs"] = required("inputs", 2, 3);
        for (const OperandRow& row : operand_rows) {
            if (row.is_mask()) shapes.is_boolean[row] = is_boolean(row.key);
            if ((row.modes & in(mode)) == 0) continue;
            shapes[row] = row.is_required(projects)
                              ? required(row.key, row.lowest_rank, row.highest_rank)
                              : find(row.key, row.lowest_rank, row.highest_rank).value_or(Shape{});
        }
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
    /// The shape with this name and one of these ranks; nothing if there is none.
    std::optional<Shape> find(const std::string& name, std::size_t min_rank,
                              std::size_t max_rank) const {
        const json sizes = member(operands_, name);
        if (sizes.is_null()) return std::nullopt;
        const auto is_size = [](std::size_t size) { return size > 0 && size <= max_axis; };
        auto shape = io::unsigned_list(sizes);
        if (!shape || shape->size() < min_rank || shape->size() > max_rank ||
            !std::all_of(shape->begin(), shape->end(), is_size))
            fail_in_result(location_,
                           "layout.operands." + name + " is " + io::shortened(sizes.dump()) +
                               "; expected a shape of rank " + std::to_string(min_rank) +
                               (min_rank == max_rank ? "" : " to " + std::to_string(max_rank)) +
                               ", of sizes 1 to " + std::to_string(max_axis));
        return shape;
    }

    Shape required(const std::string& name, std::size_t min_rank, std::size_t max_rank) const {
        if (auto shape = find(name, min_rank, max_rank)) return *std::move(shape);
        fail_in_result(location_, "layout.operands has no " + name + "; expected its shape");
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

/// The kept settings say where the input comes from and what form the file has.
bool is_kept(std::string_view key) {
    return key == "weights" || key == "format" ||
           std::ranges::find(settings_of_inputs, key) != settings_of_inputs.end();
}

/// These have a default of their own, and no other setting depends on whether they are given.
bool is_free(std::string_view key) {
    constexpr std::string_view free[] = {"seed", "dtype", "kernel", "pretty", "precision", "store"};
    return std::ranges::find(free, key) != std::end(free);
}

/// Finds which settings of a config follow from the others.
class Resolver {
public:
    Resolver(Mode mode, OperandShapes operands, const std::string& location,
             io::LoadedModels& models, const std::string& model)
        : mode_(mode), operands_(std::move(operands)), location_(location), models_(models),
          model_(model) {}

    /// The config of a question with these settings and the operands; empty if they do not fit
    /// together.
    const std::string& operator()(const json& config) {
        const auto [known, is_new] = known_.try_emplace(config.dump());
        if (is_new) known->second = resolve(config);
        return known->second;
    }

    /// The settings of `config` without those that follow from the rest. Those of `asked` stay.
    json without_followers(const json& config, const json& asked) {
        const std::string& all = (*this)(config);
        if (all.empty()) return config;
        const auto may_follow = [&](const std::string& key) {
            return !is_kept(key) && !asked.contains(key) && config.contains(key);
        };
        const json resolved = io::parse_own(all);
        // Most have the default that they have without any other.
        json bare = config, most = config;
        for (const auto& [key, value] : config.items())
            if (may_follow(key)) bare.erase(key);
        const std::string& plain = (*this)(bare);
        const json defaults = plain.empty() ? json() : io::parse_own(plain);
        for (const auto& [key, value] : config.items())
            if (may_follow(key) && member(defaults, key) == member(resolved, key)) most.erase(key);
        if ((*this)(most) != all) most = config;
        const auto from = [&](std::initializer_list<const char*> first) {
            json fewer = most;
            const auto leave_out = [&](const std::string& key) {
                if (!fewer.contains(key) || !may_follow(key)) return;
                json without = fewer;
                without.erase(key);
                if ((*this)(without) == all) fewer = std::move(without);
            };
            for (const char* key : first) leave_out(key);
            for (auto option = options().rbegin(); option != options().rend(); ++option)
                leave_out(option->key);
            return fewer;
        };
        // What follows comes after what it follows from, but for d_out, which also follows from
        // d_v.
        json by_order = from({}), by_values = from({"d_out"});
        return by_values.size() < by_order.size() ? by_values : by_order;
    }

private:
    std::string resolve(const json& config) {
        try {
            Request request;
            request.settings.mode = mode_;
            request = with_config(std::move(request), config, location_);
            if (request.has("alibi")) leave_out_slopes(request);
            if (operands_.weights) request.locations.try_emplace("weights", location_);
            if (operands_.has_token_ids && !request.text) request.token_ids = {0};
            if (!model_.empty()) request = source_of(request, config).with_model(request);
            request = with_text(std::move(request));
            request.settings = make_plan(std::move(request.settings), operands_).config;
            return config_of(request);
        } catch (const Error&) {
            return {};
        }
    }

    /// The names of many tensors take time, and few settings choose among them.
    LayerSource& source_of(const Request& request, const json& config) {
        std::string key;
        for (const char* choice :
             {"model_config", "family", "weight_names", "qkv_layout", "layer", "weights_layout"})
            key += member(config, choice).dump() + " ";
        std::unique_ptr<LayerSource>& source = sources_[key];
        if (!source) source = open_layer_source(request, models_, model_);
        return *source;
    }

    const Mode mode_;
    const OperandShapes operands_;
    const std::string& location_;
    io::LoadedModels& models_;
    const std::string& model_;
    std::map<std::string, std::string> known_;
    std::map<std::string, std::unique_ptr<LayerSource>> sources_;
};

/// Adds the settings of `asked`, which must be those of the config where it has them.
void add_asked(json& config, const json& asked, Mode mode, const std::string& location) {
    if (!asked.is_object() && !asked.is_null())
        fail_in_result(location, "asked is ", io::shortened(asked.dump()),
                       "; expected an object of settings");
    for (const auto& [key, value] : asked.items()) {
        const Option* const option = find_option(key);
        if (option == nullptr || (option->modes & in(mode)) == 0 ||
            (option->use & in_config) == 0 || is_kept(key))
            fail_in_result(location, "asked has ", io::shortened(key),
                           "; expected settings that config may have");
        if (key != "emit" && config.contains(key) && config[key] != value)
            fail_in_result(location, "asked.", key, " is ", io::shortened(value.dump()),
                           ", and config.", key, " is ", io::shortened(config[key].dump()),
                           "; expected the same");
        config[key] = value;
    }
}

/// Whether its value is the default of a request without any setting.
bool is_default(const Request& request, const std::string& key) {
    static const Request defaults;
    if (key == "emit")
        return std::ranges::is_permutation(request.settings.emit, defaults.settings.emit);
    std::string value, otherwise;
    append_value(value, *find_option(key), request);
    append_value(otherwise, *find_option(key), defaults);
    return value == otherwise;
}

/// Whether asked_config() finds these settings in the config alone.
bool are_found(const Request& request, const std::string& asked, const OperandShapes& operands,
               io::LoadedModels& models) {
    const json config = io::parse_own(config_of(request)), given = io::parse_own(asked);
    const auto weights = request.operand_files.find("weights");
    const std::string model = weights == request.operand_files.end() ? "" : weights->second;
    const std::string location = "config";
    Resolver resolve(request.settings.mode, operands, location, models, model);
    json with_kept = given;
    for (const auto& [key, value] : config.items())
        if (is_kept(key)) with_kept[key] = value;
    // No list of them could be asked again, if they give no plan.
    if (resolve(with_kept).empty()) return true;
    const json found = resolve.without_followers(config, json::object());
    return std::ranges::all_of(given.items(),
                               [&](const auto& item) { return found.contains(item.key()); });
}

}  // namespace

OperandShapes shapes_of_layout(const json& layout, Mode mode, const std::string& location) {
    return LayoutReader(layout, location).read(mode);
}

void leave_out_slopes(Request& request) {
    Settings& settings = request.settings;
    if (settings.alibi) return;
    settings.may_follow =
        settings.may_follow || request.has("alibi_slopes") || request.has("alibi_distance");
    settings.slope_formula.reset();
    settings.alibi_distance.reset();
    settings.alibi_slopes.clear();
    request.operand_files.erase("alibi_slopes");
}

json asked_config(const io::ResultHead& head, const std::string& model) {
    const ModeRow* const mode = mode_named(head.mode);
    if (mode == nullptr) return *head.config;
    json config = *head.config;
    if (!config.is_object())
        fail_in_result(head.location,
                       "has no config; expected a result of attn, which has a mode and a config");
    io::LoadedModels models;
    Resolver resolve(mode->mode, shapes_of_layout(*head.layout, mode->mode, head.location),
                     head.location, models, model);
    const std::string all = resolve(config);
    add_asked(config, *head.asked, mode->mode, head.location);
    if (const std::string& with_asked = resolve(config); !with_asked.empty() && with_asked != all)
        fail_in_result(head.location, "asked is ", io::shortened(head.asked->dump()),
                       ", which does not give its config; expected the settings that it was "
                       "computed with");
    json asked = resolve.without_followers(config, *head.asked);
    if (head.asked->contains("emit")) asked["emit"] = (*head.asked)["emit"];
    if (all.empty() || !asked.contains("emit")) return asked;
    json every = asked;
    every["emit"] = {"all"};
    if (resolve(every) == all) return every;
    // Without --emit a result of --backward has these too.
    every["emit"] = Settings().emit;
    every["emit"].emplace_back(all_gradients);
    if (resolve(every) == all) asked.erase("emit");
    return asked;
}

std::string asked_beside_config(const Request& request, const std::vector<GivenSetting>& given,
                                const OperandShapes& operands, io::LoadedModels& models) {
    // With a model or a text only planning tells what follows. It costs more than a small answer.
    // So does planning for a result's config, which also gives settings that were not asked.
    const bool has_source =
        request.has("weights") || request.text || !request.token_ids.empty() ||
        std::ranges::any_of(request.locations, [](const auto& x) { return x.second.follows; });
    const auto is_told = [](const GivenSetting& x) { return !is_kept(x.key) && !is_free(x.key); };
    const bool may_follow = has_source || request.settings.may_follow ||
                            std::ranges::any_of(given, [&](const GivenSetting& setting) {
                                return is_told(setting) && is_default(request, setting.key);
                            });
    if (!may_follow) return {};
    std::string asked;
    for (const GivenSetting& setting : given) {
        const auto& [key, before] = setting;
        if (!is_told(setting)) continue;
        std::string value;
        if (key != "emit") append_value(value, *find_option(key), request);
        if (value.empty()) value = before;
        if (!value.empty()) asked += (asked.empty() ? "{\"" : ",\"") + key + "\":" + value;
    }
    // A request with every setting is the config of a result, and its answer the same bytes.
    const auto is_given = [&](const Option& option) {
        std::string value;
        if (is_in_config(request, option)) append_value(value, option, request);
        return value.empty() ||
               find_row(given, &GivenSetting::key, std::string(option.key)) != nullptr;
    };
    if (asked.empty() || std::ranges::all_of(options(), is_given)) return {};
    asked += '}';
    return has_source && are_found(request, asked, operands, models) ? "" : asked;
}

}  // namespace attn::cli
