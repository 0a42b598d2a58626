// Reads the rows of this program's own tables in JSON: each member of a struct from the field of
// its name.
#pragma once

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/names.hpp"
#include "core/model/attention_part.hpp"
#include "io/text/text.hpp"

namespace attn::io {

/// The names of an enumeration's values, in their order.
template <class Value>
constexpr std::string_view value_names;
template <>
constexpr std::string_view value_names<JoinedHeads> = "separate parts groups blocks";

[[noreturn]] inline void refuse_unknown(const std::string& found) {
    throw std::logic_error("a table of models has an unknown " + found);
}

inline std::string_view text_in(const nlohmann::json& value) {
    return value.get_ref<const std::string&>();
}

/// The member of `to` under its own name.
#define FIELD(member) Field(#member, to.member)

/// What a Table is based on. Table::read takes a value and a member of each type that rows have.
template <class Table>
class RowReader {
public:
    using json = nlohmann::json;

    void read(const json& value, std::string_view& member) { member = text_in(value); }
    void read(const json& value, json& member) { member = value; }
    void read(const json& value, std::vector<std::string_view>& member) {
        member = split_text(text_in(value), ' ');
    }
    template <class Value>
    void read(const json& value, Value& member) {
        if constexpr (std::is_enum_v<Value>) {
            const std::vector<std::string_view> names = split_text(value_names<Value>, ' ');
            const auto found = std::ranges::find(names, text_in(value));
            if (found == names.end()) refuse_unknown("value " + value.dump());
            member = static_cast<Value>(found - names.begin());
        } else {
            member = value.get<Value>();
        }
    }

protected:
    /// A member of a row, whatever its type.
    class Field {
    public:
        template <class Member>
        Field(std::string_view name, Member& member)
            : key(name), to_(&member), read_([](Table& table, const json& value, void* to) {
                  table.read(value, *static_cast<Member*>(to));
              }) {}
        void read(Table& table, const json& value) const { read_(table, value, to_); }

        const std::string_view key;

    private:
        void* const to_;
        void (*const read_)(Table&, const json&, void*);
    };

    /// `others`: fields that are read in another way.
    template <class... Fields>
    void read_members(const json& from, std::string_view others, const Fields&... all) {
        const std::array fields{all...};
        const std::vector<std::string_view> passed = split_text(others, ' ');
        for (const auto& member : from.items()) {
            const std::string_view key = member.key();
            if (const Field* const field = find_row(fields, &Field::key, key))
                field->read(static_cast<Table&>(*this), member.value());
            else if (std::ranges::find(passed, key) == passed.end())
                refuse_unknown("field " + member.key());
        }
    }
};

}  // namespace attn::io
