// Stores the values of options in a request, and reads them back.
#pragma once

#include <cstddef>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "cli/request/request.hpp"
#include "core/plan/backend.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {

/// Shapes as JSON, by tensor.
using TensorShapes = std::map<std::string, std::string>;

// take() stores a value, in the form of a request's key, in a field of each type. It returns an
// empty string, or the error and leaves the field unchanged.
std::string take(bool& field, const nlohmann::json& value, const Limits& limits);
std::string take(std::uint64_t& field, const nlohmann::json& value, const Limits& limits);
std::string take(Seed& field, const nlohmann::json& value, const Limits& limits);
std::string take(double& field, const nlohmann::json& value, const Limits& limits);
std::string take(std::string& field, const nlohmann::json& value, const Limits& limits);
std::string take(TensorShapes& field, const nlohmann::json& value, const Limits& limits);
/// Of a stored type and of a scale of colours, the text that --store and --color-scale take.
std::string take(StoredType& field, const nlohmann::json& value, const Limits& limits);
/// The text of a formula, which the plan reads.
std::string take(Expression& field, const nlohmann::json& value, const Limits& limits);
std::string take(io::ColorScale& field, const nlohmann::json& value, const Limits& limits);
std::string take(std::vector<std::string>& field, const nlohmann::json& value,
                 const Limits& limits);
/// Comma-separated numbers, a JSON list of numbers, or one number.
template <class T>
std::string take(std::vector<T>& field, const nlohmann::json& value, const Limits& limits);
template <class T>
std::string take(std::optional<T>& field, const nlohmann::json& value, const Limits& limits) {
    T taken{};
    std::string problem = take(taken, value, limits);
    if (problem.empty()) field = std::move(taken);
    return problem;
}

// append_field() appends a field as JSON, or nothing if it is not given.
void append_field(std::string& out, const Seed& seed);
void append_field(std::string& out, const TensorShapes& shapes);
inline void append_field(std::string& out, const StoredType& type) {
    io::append_json(out, io::text_of(type));
}
inline void append_field(std::string& out, const Expression& formula) {
    if (!formula.text.empty()) io::append_json(out, formula.text);
}
inline void append_field(std::string& out, const io::ColorScale& scale) {
    io::append_json(out, text_of(scale));
}
template <class T>
void append_field(std::string& out, const T& field) {
    io::append_json(out, field);
}
template <class T>
void append_field(std::string& out, const std::vector<T>& list) {
    if (!list.empty()) io::append_json(out, list);
}
template <class T>
void append_field(std::string& out, const std::optional<T>& field) {
    if (field) append_field(out, *field);
}

namespace field_detail {

/// The kind of a field of each type.
struct KindOf {
    using enum FieldKind;
    static constexpr FieldKind type(const void*) { return word; }
    static constexpr FieldKind type(const bool*) { return boolean; }
    static constexpr FieldKind type(const std::uint64_t*) { return integer; }
    static constexpr FieldKind type(const Seed*) { return seed; }
    static constexpr FieldKind type(const double*) { return number; }
    static constexpr FieldKind type(const std::string*) { return string; }
    static constexpr FieldKind type(const std::vector<std::string>*) { return strings; }
    static constexpr FieldKind type(const std::vector<std::uint64_t>*) { return integers; }
    static constexpr FieldKind type(const std::vector<std::int64_t>*) { return signed_integers; }
    static constexpr FieldKind type(const std::vector<double>*) { return numbers; }
    static constexpr FieldKind type(const TensorShapes*) { return shapes; }
    static constexpr FieldKind type(const StoredType*) { return string; }
    static constexpr FieldKind type(const Expression*) { return string; }
    static constexpr FieldKind type(const io::ColorScale*) { return number; }
    template <class T>
    static constexpr FieldKind type(const std::optional<T>*) {
        return type(static_cast<const T*>(nullptr));
    }
};

template <auto... path>
using TypeAt = std::remove_cvref_t<decltype((std::declval<Request&>().*....*path))>;

}  // namespace field_detail

/// The member of a request at the end of a path: field_of<&Request::settings, &Settings::d_out>.
template <auto... path>
inline constexpr Field field_of{
    .kind = field_detail::KindOf::type(static_cast<const field_detail::TypeAt<path...>*>(nullptr)),
    .set = [](Request& request, const nlohmann::json& value,
              const Limits& limits) { return take((request.*....*path), value, limits); },
    .append = [](std::string& json,
                 const Request& request) { append_field(json, (request.*....*path)); }};

/// The field as one of another kind, which another function may set.
constexpr Field as(FieldKind kind, Field field,
                   std::string (*set)(Request&, const nlohmann::json&, const Limits&) = nullptr) {
    field.kind = kind;
    if (set != nullptr) field.set = set;
    return field;
}

/// An index, or the label of a token, which is not an integer.
std::string take_token(Request& request, const nlohmann::json& value, const Limits& limits);

/// Bytes, as "500MB" or "8GiB".
std::string take_size(Request& request, const nlohmann::json& value, const Limits& limits);

/// One scale, or a list of one for each head, which are factors on a scale of 1.
std::string take_scales(Request& request, const nlohmann::json& value, const Limits& limits);
void append_scales(std::string& out, const Request& request);
inline constexpr Field scales_field{
    .kind = FieldKind::number, .set = take_scales, .append = append_scales};

/// A range of rows: "A:B", or a list of both; B is excluded.
std::string take_rows(Request& request, const nlohmann::json& value, const Limits& limits);

/// Arrays of formulas, by name: an object of lists and files, or what flags give.
std::string take_let(Request& request, const nlohmann::json& value, const Limits& limits);
void append_let(std::string& out, const Request& request);
inline constexpr Field let_field{.kind = FieldKind::arrays, .set = take_let, .append = append_let};

/// An array of up to four axes in a flag's list or in lists of a request.
std::string take_array(std::shared_ptr<const Array<double>>& field, const nlohmann::json& value);
void append_array(std::string& out, const std::shared_ptr<const Array<double>>& field);
template <auto member>
inline constexpr Field array_field{
    .kind = FieldKind::operand,
    .set = [](Request& request, const nlohmann::json& value,
              const Limits&) { return take_array(request.settings.*member, value); },
    .append = [](std::string& json,
                 const Request& request) { append_array(json, request.settings.*member); }};

/// A model's rope_parameters, or numbers.
std::string take_rope_scaling(Request& request, const nlohmann::json& value, const Limits& limits);
void append_rope_scaling(std::string& out, const Request& request);
inline constexpr Field rope_scaling_field{
    .kind = FieldKind::parameters, .set = take_rope_scaling, .append = append_rope_scaling};

/// Valid keys of each batch entry, or of each query.
std::string take_lengths(Request& request, const nlohmann::json& value, const Limits& limits);
void append_lengths(std::string& out, const Request& request);
inline constexpr Field lengths_field{
    .kind = FieldKind::operand, .set = take_lengths, .append = append_lengths};

/// An initialiser with its numbers, as text: "xavier_uniform,0.5".
std::string take_init(Request& request, const nlohmann::json& value, const Limits& limits);
void append_init(std::string& json, const Request& request);
inline constexpr Field init_field{
    .kind = FieldKind::string,
    .set = take_init,
    .append = append_init,
    .name =
        [](std::size_t i) { return i < init_rows.size() ? init_rows[i].form : std::string_view(); },
    .has_default = true};

/// The index of the name that the value is, or of the empty name after the last one.
std::size_t index_of_name(std::string_view (*name)(std::size_t), const nlohmann::json& value);

/// Stores a value in the form of a request's key. Returns what is wrong with it and what was
/// expected, or an empty string.
std::string store(Request& request, const Option& option, const nlohmann::json& value);

/// Appends the value for `config` as JSON, or nothing if it is not given.
void append_value(std::string& out, const Option& option, const Request& request);

/// A flag's text as the value that its key would have. Text that does not fit stays a string, which
/// `store` rejects.
nlohmann::json value_of(const Option& option, const std::string& text);

/// "THEIRS=OURS" of each word; of "OURS" alone, with an empty first name. Errors: kind usage at
/// `location` for a name that comes twice.
std::vector<std::pair<std::string, std::string>> name_pairs(std::span<const std::string> words,
                                                            const std::string& location);

/// A list of words in the syntax of --tokens: comma-separated, or JSON. Empty if it is neither.
std::vector<std::string> word_list(const std::string& text);

/// The integers of a command's own flag, at most 2^31; none if it is not given. Errors: kind usage.
std::vector<std::uint64_t> whole_list(const Args& args, std::string_view key);

/// The comma-separated parts of a list, as on the command line, without surrounding blanks.
std::vector<std::string> split_list(const std::string& text);

namespace option_rows {

template <auto member>
inline constexpr Field setting = field_of<&Request::settings, member>;

/// One of several names. C has name(index), choose(request, index) and chosen(request), which is
/// empty if none is given.
template <class C>
inline constexpr Field choice{.kind = FieldKind::choice,
                              .set =
                                  [](Request& request, const nlohmann::json& value, const Limits&) {
                                      C::choose(request, index_of_name(C::name, value));
                                      return std::string();
                                  },
                              .append =
                                  [](std::string& json, const Request& request) {
                                      const std::string_view name = C::chosen(request);
                                      if (!name.empty()) io::append_json(json, name);
                                  },
                              .name = C::name,
                              .has_default = C::has_default};

/// A field that holds one of `names`; an optional field may be empty.
template <const auto& names, auto... path>
struct Named {
    using Value = typename std::remove_cvref_t<decltype(names)>::value_type::first_type;
    using Kind = field_detail::TypeAt<path...>;
    static constexpr bool has_default = std::is_same_v<Kind, Value>;

    static std::string_view name(std::size_t index) {
        return index < names.size() ? names[index].second : std::string_view();
    }
    static void choose(Request& request, std::size_t index) {
        (request.*....*path) = names[index].first;
    }
    static std::string_view chosen(const Request& request) {
        const Kind& value = (request.*....*path);
        if constexpr (has_default)
            return name_of(names, value);
        else
            return value ? name_of(names, *value) : std::string_view();
    }
};

template <const auto& names, auto... path>
inline constexpr Field among = choice<Named<names, path...>>;
template <const auto& names, auto member>
inline constexpr Field setting_among = among<names, &Request::settings, member>;

struct NamedBackend {
    static constexpr bool has_default = true;
    static std::string_view name(std::size_t index) { return backend_name(index); }
    static void choose(Request& request, std::size_t index) {
        request.settings.kernel = backend_name(index);
    }
    static std::string_view chosen(const Request& request) { return request.settings.kernel; }
};

/// A type of the arithmetic, or one that keys, values and parameters are quantised to.
struct NamedDtype {
    static constexpr bool has_default = true;
    static std::string_view name(std::size_t index) {
        return index < dtype_names.size() ? dtype_names[index].second : std::string_view();
    }
    static void choose(Request& request, std::size_t index) {
        const NumberType type = dtype_names[index].first;
        const bool quantises = (row_of(type).uses & use::quantises) != 0;
        request.settings.dtype = quantises ? NumberType::float32 : type;
        request.settings.quantised_type = quantises ? std::optional(type) : std::nullopt;
    }
    static std::string_view chosen(const Request& request) {
        return row_of(request.settings.quantised_type.value_or(request.settings.dtype)).name;
    }
};

/// How dimensions are paired for rotation; `none` rotates nothing. An unset option is not `none`: a
/// model's tensors may not show which pairs it rotates.
struct NamedRope {
    static constexpr bool has_default = false;
    static std::string_view name(std::size_t index) {
        if (index == rope_names.size()) return "none";
        return index < rope_names.size() ? rope_names[index].second : std::string_view();
    }
    static void choose(Request& request, std::size_t index) {
        request.settings.rope.reset();
        if (index < rope_names.size()) request.settings.rope = rope_names[index].first;
    }
    static std::string_view chosen(const Request& request) {
        if (request.settings.rope) return name_of(rope_names, *request.settings.rope);
        return request.has("rope") ? "none" : "";
    }
};

/// A field that points to a family of models, or is null. Names of classes are read, not written.
template <const io::Family* Request::*member>
struct NamedFamily {
    static constexpr bool has_default = false;
    static std::string_view name(std::size_t index) {
        const auto& all = io::all_families();
        const bool is_there =
            index < all.size() && (member == &Request::family || !all[index].of_class);
        return is_there ? all[index].name : std::string_view();
    }
    static void choose(Request& request, std::size_t index) {
        request.*member = &io::all_families()[index];
    }
    static std::string_view chosen(const Request& request) {
        return request.*member != nullptr ? (request.*member)->name : std::string_view();
    }
};

/// Slopes of ALiBi: a formula by name, or numbers; a file's are read in place of these.
struct Slopes {
    static std::string_view name(std::size_t index) {
        return Named<slope_formula_names, &Request::settings, &Settings::slope_formula>::name(
            index);
    }
    static std::string set(Request& request, const nlohmann::json& value, const Limits& limits) {
        Settings& settings = request.settings;
        const std::size_t index = index_of_name(name, value);
        if (index == slope_formula_names.size()) {
            std::string problem = take(settings.alibi_slopes, value, limits);
            if (problem.empty()) settings.slope_formula.reset();
            return problem;
        }
        settings.slope_formula = slope_formula_names[index].first;
        settings.alibi_slopes.clear();
        return {};
    }
    static void append(std::string& json, const Request& request) {
        if (request.settings.slope_formula)
            io::append_json(json, name_of(slope_formula_names, *request.settings.slope_formula));
        else
            append_field(json, request.settings.alibi_slopes);
    }
};
inline constexpr Field slopes_field{
    .kind = FieldKind::operand, .set = Slopes::set, .append = Slopes::append, .name = Slopes::name};

}  // namespace option_rows

}  // namespace attn::cli
