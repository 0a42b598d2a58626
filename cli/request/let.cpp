// Formulas and the arrays that they name: --let NAME=FILE|LIST, and the object of a request's key
// `let`.
#include <algorithm>

#include "cli/request/field.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

constexpr std::size_t max_axes = 4;

/// Appends the numbers of nested lists, which all have the lengths of `shape` from `axis` on.
bool append_numbers(std::vector<double>& numbers, const json& value,
                    const std::vector<std::size_t>& shape, std::size_t axis) {
    if (axis == shape.size()) {
        if (!value.is_number() && !value.is_boolean()) return false;
        numbers.push_back(value.is_boolean() ? double(value.get<bool>()) : value.get<double>());
        return true;
    }
    return value.is_array() && value.size() == shape[axis] &&
           std::ranges::all_of(value, [&](const json& element) {
               return append_numbers(numbers, element, shape, axis + 1);
           });
}

/// The array of nested lists, or null.
std::shared_ptr<const Array<double>> array_of(const json& value) {
    std::vector<std::size_t> shape;
    for (const json* list = &value; list->is_array() && !list->empty(); list = &list->front())
        shape.push_back(list->size());
    std::vector<double> numbers;
    if (shape.empty() || shape.size() > max_axes || !append_numbers(numbers, value, shape, 0))
        return nullptr;
    Array<double> array = Array<double>::from_shape(shape);
    std::ranges::copy(numbers, array.begin());
    return std::make_shared<const Array<double>>(std::move(array));
}

void append_lists(std::string& out, const Array<double>& array, std::size_t axis,
                  std::size_t& next) {
    if (axis == array.dimension()) return io::append_json(out, array.data()[next++]);
    for (std::size_t i = 0; i < array.shape(axis); ++i) {
        out += i == 0 ? '[' : ',';
        append_lists(out, array, axis + 1, next);
    }
    out += ']';
}

/// Lists of a request, or of a flag's text, 1,2 or [[1,2]]; null if it has none.
json lists_of(const json& value) {
    if (!value.is_string()) return value;
    const std::string& text = value.get_ref<const std::string&>();
    if (text.starts_with('[')) return json::parse(text, nullptr, false);
    std::vector<double> numbers;
    const Limits limits{0, std::numeric_limits<double>::max(), "", std::size_t{1} << 31};
    if (!take(numbers, json(text), limits).empty()) return {};
    return numbers;
}

}  // namespace

std::string take(Expression& field, const json& value, const Limits& limits) {
    return take(field.text, value, limits);
}

std::string take_array(std::shared_ptr<const Array<double>>& field, const json& value) {
    auto array = array_of(value.is_number() ? json::array({value}) : lists_of(value));
    if (array == nullptr) return "not an array; expected numbers, lists of them, or a file";
    field = std::move(array);
    return {};
}

void append_array(std::string& out, const std::shared_ptr<const Array<double>>& field) {
    std::size_t next = 0;
    if (field != nullptr) append_lists(out, *field, 0, next);
}

std::string take_lengths(Request& request, const json& value, const Limits& limits) {
    Settings& s = request.settings;
    const json lists = lists_of(value);
    const bool is_by_query = lists.is_array() && !lists.empty() && lists.front().is_array();
    std::string problem =
        is_by_query ? take_array(s.query_lengths, value) : take(s.kv_lengths, value, limits);
    if (problem.empty() && is_by_query) s.kv_lengths.clear();
    if (problem.empty() && !is_by_query) s.query_lengths.reset();
    return problem;
}

void append_lengths(std::string& out, const Request& request) {
    append_field(out, request.settings.kv_lengths);
    append_array(out, request.settings.query_lengths);
}

std::string take_scales(Request& request, const json& value, const Limits& limits) {
    Settings& s = request.settings;
    const bool is_list = value.is_array() || value.dump().find(',') != std::string::npos;
    std::vector<double> list;
    std::string problem = is_list ? take(list, value, limits) : take(s.scale, value, limits);
    if (problem.empty()) s.head_scales = std::move(list);
    if (problem.empty() && is_list) s.scale = 1;
    return problem;
}

void append_scales(std::string& out, const Request& request) {
    const Settings& s = request.settings;
    s.head_scales.empty() ? append_field(out, s.scale) : append_field(out, s.head_scales);
}

std::string take_let(Request& request, const json& value, const Limits&) {
    json object = value;
    if (value.is_string()) {  // of flags, a zero character between two
        object = json::object();
        for (const std::string_view word :
             io::split_text(value.get_ref<const std::string&>(), '\0')) {
            const std::size_t equals = word.find('=');
            if (equals == 0 || equals >= word.size() - 1)
                return "not an array with its name; expected NAME=ARRAY, as doc=0,0,1,1";
            json& given = object[std::string(word.substr(0, equals))];
            if (!given.is_null())
                return concat(word.substr(0, equals), " comes twice; expected it once");
            given = std::string(word.substr(equals + 1));
        }
    }
    if (!object.is_object()) return "not an object; expected {\"name\": [numbers]}";
    ExpressionArrays arrays;
    std::map<std::string, std::string> files;
    for (const auto& [name, given] : object.items()) {
        if (!is_name_of_array(name))
            return io::quoted_name(name) +
                   " is not a new name; expected letters, digits and _, and no variable or "
                   "function";
        std::shared_ptr<const Array<double>> array;
        if (take_array(array, given).empty())
            arrays[name] = std::move(array);
        else if (given.is_string() && !given.get<std::string>().empty())
            files[name] = given.get<std::string>();
        else
            return io::quoted_name(name) + ": not an array; expected lists of numbers, of up to " +
                   std::to_string(max_axes) + " axes, or the name of a file";
    }
    request.settings.let = std::move(arrays);
    std::erase_if(request.operand_files, [](const auto& file) { return is_of_let(file.first); });
    for (auto& [name, file] : files)
        request.operand_files[concat(let_prefix, name)] = std::move(file);
    return {};
}

void append_let(std::string& out, const Request& request) {
    const bool has_files = std::ranges::any_of(
        request.operand_files, [](const auto& file) { return is_of_let(file.first); });
    if (request.settings.let.empty() && !has_files) return;
    out += '{';
    const auto append_name = [&](const std::string& name) {
        if (out.back() != '{') out += ',';
        io::append_json_string(out, name);
        out += ':';
    };
    for (const auto& [name, array] : request.settings.let) {
        append_name(name);
        append_array(out, array);
    }
    for (const auto& [key, file] : request.operand_files) {
        if (!is_of_let(key)) continue;
        append_name(key.substr(let_prefix.size()));
        io::append_json_string(out, file);
    }
    out += '}';
}

}  // namespace attn::cli
