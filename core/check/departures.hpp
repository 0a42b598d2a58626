// The conventions in which programs differ: for each, what other programs do instead.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/check/problem.hpp"

namespace attn {

struct ConventionRow;

/// One change of a question's conventions.
struct Alternative {
    const ConventionRow* convention;
    std::string asked, found;  ///< in words
    std::function<void(Conventions&)> change;
    std::size_t max_changes = 3;  ///< in a match that has this one
    /// Alternatives of one convention combine if they change different settings.
    std::size_t setting = 0;
    /// Another convention that it changes in the same step, which has `words`.
    const ConventionRow* also = nullptr;
};

/// The alternatives of one convention to a question's own.
class Alternatives {
public:
    Alternatives(const Problem& of, const ConventionRow& convention)
        : problem(of), convention_(convention), tried_{of.asked} {}

    const Problem& problem;
    std::vector<Alternative> list;

    /// What the question asks for, in words, and the setting that the next ones change.
    void asked(std::string words, std::size_t setting = 0) {
        asked_ = std::move(words);
        setting_ = setting;
    }

    /// Unless it does nothing, what an earlier one does, or what the sizes of tensors do not allow.
    void add(std::string found, std::size_t max_changes, std::function<void(Conventions&)> change);
    void add(std::string found, std::function<void(Conventions&)> change) {
        add(std::move(found), 3, std::move(change));
    }
    /// The same, of one member, or of one in a group of them.
    template <class Of, class Value>
    void set(std::string found, Value Of::*member, std::type_identity_t<Value> value,
             std::size_t max_changes = 3) {
        add(std::move(found), max_changes, [=](Conventions& c) { c.*member = value; });
    }
    template <class Of, class Group, class Value>
    void set(std::string found, Group Of::*group, Value Group::*member,
             std::type_identity_t<Value> value, std::size_t max_changes = 3) {
        add(std::move(found), max_changes, [=](Conventions& c) { c.*group.*member = value; });
    }

private:
    const ConventionRow& convention_;
    std::string asked_;
    std::size_t setting_ = 0;
    std::set<Conventions> tried_;
};

inline std::string no_flag(const Problem&, const Conventions&) {
    return {};
}

struct ConventionRow {
    std::string_view name;  ///< in reports
    /// What comes before the words of a change for which attn has no flag: "softmax over queries".
    std::string_view beginning;
    /// Adds those that can apply to the question.
    void (*add_alternatives)(Alternatives& to);
    /// The flag with which attn computes what was found; empty: there is none.
    std::string (*flag)(const Problem& problem, const Conventions& found) = no_flag;
    /// In place of an alternative's words, where they depend on several changes of a match.
    std::string (*words)(const Conventions& found) = nullptr;
    /// One that may be any number, and where to look first if the question has 0; 0: nowhere.
    double& (*number)(Conventions&) = nullptr;
    double usual = 0;
    bool keeps_words = false;  ///< reports show the words with the flag
};

/// In the order of reports.
const std::vector<ConventionRow>& convention_rows();
extern const std::span<const ConventionRow> rows_of_masks, rows_of_rules, rows_of_products,
    rows_of_scores, rows_of_arrays, rows_of_dropout, rows_of_backward;

/// Those of all conventions.
std::vector<Alternative> alternatives_of(const Problem& problem);

/// The shortest decimal that reads back the same, and several with commas between them.
std::string shortest_decimal(double number);
template <class Numbers>
std::string listed_numbers(const Numbers& numbers) {
    std::string list;
    for (const auto number : numbers)
        list += (list.empty() ? "" : ",") + shortest_decimal(static_cast<double>(number));
    return list;
}

/// The offsets that attn has for an alignment.
std::vector<std::int64_t> top_left_offset(const Problem& problem);
std::vector<std::int64_t> bottom_right_offset(const Problem& problem, const Conventions& by);

}  // namespace attn
