// Fields of options whose values are names, and of operands that constants may replace.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "cli/request/field.hpp"
#include "cli/request/request.hpp"
#include "core/plan/backend.hpp"

namespace attn::cli::option_rows {

template <auto member>
inline constexpr Field setting = field_of<&Request::settings, member>;

/// One of several names. C has name(place), choose(request, place) and chosen(request), which is
/// empty if none is given.
template <class C>
inline constexpr Field choice{.kind = FieldKind::choice,
                              .set =
                                  [](Request& request, const nlohmann::json& value, const Limits&) {
                                      C::choose(request, place_of_name(C::name, value));
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

    static std::string_view name(std::size_t place) {
        return place < names.size() ? names[place].second : std::string_view();
    }
    static void choose(Request& request, std::size_t place) {
        (request.*....*path) = names[place].first;
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
    static std::string_view name(std::size_t place) { return backend_name(place); }
    static void choose(Request& request, std::size_t place) {
        request.settings.kernel = backend_name(place);
    }
    static std::string_view chosen(const Request& request) { return request.settings.kernel; }
};

/// How dimensions are paired for rotation; `none` rotates nothing. An unset option is not `none`: a
/// model's tensors may not show which pairs it rotates.
struct NamedRope {
    static constexpr bool has_default = false;
    static std::string_view name(std::size_t place) {
        if (place == rope_names.size()) return "none";
        return place < rope_names.size() ? rope_names[place].second : std::string_view();
    }
    static void choose(Request& request, std::size_t place) {
        request.settings.rope.reset();
        if (place < rope_names.size()) request.settings.rope = rope_names[place].first;
    }
    static std::string_view chosen(const Request& request) {
        if (request.settings.rope) return name_of(rope_names, *request.settings.rope);
        return request.has("rope") ? "none" : "";
    }
};

/// A field that points to a family of models, or is null.
template <const io::Family* Request::*member>
struct NamedFamily {
    static constexpr bool has_default = false;
    static std::string_view name(std::size_t place) {
        const auto all = io::all_families();
        return place < all.size() ? all[place]->name : std::string_view();
    }
    static void choose(Request& request, std::size_t place) {
        request.*member = io::all_families()[place];
    }
    static std::string_view chosen(const Request& request) {
        return request.*member != nullptr ? (request.*member)->name : std::string_view();
    }
};

/// Slopes of ALiBi: a formula by name, or numbers; a file's are read in place of these.
struct Slopes {
    static std::string_view name(std::size_t place) {
        return Named<slope_formula_names, &Request::settings, &Settings::slope_formula>::name(
            place);
    }
    static std::string set(Request& request, const nlohmann::json& value, const Limits& limits) {
        Settings& settings = request.settings;
        const std::size_t place = place_of_name(name, value);
        if (place == slope_formula_names.size()) {
            std::string problem = take(settings.alibi_slopes, value, limits);
            if (problem.empty()) settings.slope_formula.reset();
            return problem;
        }
        settings.slope_formula = slope_formula_names[place].first;
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

/// An array, or constants in place of one.
template <auto member>
inline constexpr Field operand_or = [] {
    Field field = setting<member>;
    field.kind = FieldKind::operand;
    return field;
}();

}  // namespace attn::cli::option_rows
