#include "cli/check/check.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "cli/args/names.hpp"
#include "cli/request/field.hpp"
#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/check/evaluate.hpp"
#include "io/file/source.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

constexpr std::string_view nameless = "array";  // as ResultView calls it

template <class Arrays>
std::string listed_names(const Arrays& arrays) {
    constexpr std::size_t longest = 300;
    return io::one_line(io::shortened(io::comma_list(arrays, &io::ArrayView::name), longest));
}

ArrayId array_of(const std::string& name, const std::string& location) {
    const auto found = find_array(name);
    if (found && Evaluator::has(*found)) return *found;
    if (found && !found->row().is_operand())
        throw Error(ErrorKind::usage, location, name,
                    " are given, not computed; expected an array that is computed");
    std::vector<std::string> names;
    const bool is_gradient = name.find("grad") != std::string::npos;
    for (const ArrayRow& row : emitted_arrays)
        if (!row.is_operand() && row.is_gradient() == is_gradient) names.emplace_back(row.name);
    const std::string near = did_you_mean(name, names);
    throw Error(ErrorKind::usage, location, io::shortened(name), " is not an array of attn",
                (near.empty() ? "; expected one of those that attn help requests lists"
                              : "; did you mean " + near + "?"));
}

/// Whether each number is the shortest decimal of one of this type, as attn writes bfloat16 and
/// float16.
bool are_decimals_of(NumberType type, std::span<const double> numbers) {
    return std::ranges::all_of(numbers, [&](double x) {
        const auto nearest = static_cast<float>(rounded(x, type));
        if (!std::isfinite(nearest)) return !std::isfinite(x);
        std::array<char, io::max_number_length> text;
        const char* const end = io::write_number(text.data(), nearest, {}, type);
        return io::parse_loose_number({text.data(), end}).value == x;
    });
}

/// Pairs the arrays of a file with attn's.
class TheirReader {
public:
    TheirReader(const io::InputFile& file, const TheirOptions& options, const Plan& plan,
                ThreadPool& pool)
        : file_(file), options_(options), plan_(plan), pool_(pool),
          view_(file,
                file.array.empty() ? io::ResultView::Scope::whole : io::ResultView::Scope::named) {}

    TheirFile read() {
        if (io::schema_of(file_) == schemas::part)
            throw Error(ErrorKind::usage, view_.location(),
                        "a part of a computation; expected the result of attn merge, which joins "
                        "all parts");
        require_memory(2 * view_.bytes(), view_.location(), "reading its arrays");
        TheirFile theirs{view_.location(), {}, {}};
        check_names();
        std::vector<std::pair<ArrayId, const io::ArrayView*>> found;
        for (const io::ArrayView& array : view_.arrays()) {
            const std::optional<ArrayId> ours = ours_of(array);
            if (!ours || array.is_absent) {
                theirs.not_compared.push_back(array.name);
                continue;
            }
            for (const auto& [other, view] : found)
                if (other == *ours)
                    throw Error(ErrorKind::usage, view_.location(), "two arrays for ",
                                ours->row().name, ": ", listed_names(std::array{view, &array}),
                                "; expected one, as --names ", view->name, "=", ours->row().name,
                                " chooses it");
            found.emplace_back(*ours, &array);
        }
        if (found.empty()) fail_without_arrays();
        std::sort(found.begin(), found.end(),
                  [](const auto& a, const auto& b) { return a.first.index < b.first.index; });
        for (const auto& [ours, array] : found) theirs.arrays.push_back(given(ours, *array));
        const std::vector<std::size_t>& shape = theirs.arrays[0].shape;
        const auto is_like = [&](ArrayId array) {
            return exists(array) && !layouts_of(plan_, array, shape).empty();
        };
        const bool is_nameless =
            options_.names.empty() && view_.is_one_array() && own_name(view_.arrays()[0]).empty();
        if (is_nameless && !is_like("context_vectors") && is_like("attention_weights"))
            theirs.fits = ArrayId("attention_weights");
        return theirs;
    }

private:
    bool exists(ArrayId array) const {
        return Evaluator::has(array) && plan_.has(array.row()) &&
               plan_.numbers<std::uint64_t>(array) != 0;
    }

    /// The name of an array that the file does not name: that of the file, if it is one of attn's.
    std::string own_name(const io::ArrayView& array) const {
        if (!view_.is_one_array() || array.name != nameless) return array.name;
        std::string stem = file_.name.substr(file_.name.find_last_of('/') + 1);
        stem.resize(std::min(stem.find('.'), stem.size()));
        return find_array(stem) ? stem : "";
    }

    std::optional<ArrayId> ours_of(const io::ArrayView& array) const {
        const std::string name = own_name(array);
        for (const NamePair& pair : options_.names)
            if (pair.theirs == name || (pair.theirs == array.name) ||
                (pair.theirs.empty() && (view_.is_one_array() || name == pair.ours.row().name)))
                return pair.ours;
        const auto is_said = [&](ArrayId ours) {
            return std::any_of(options_.names.begin(), options_.names.end(),
                               [&](const NamePair& pair) { return pair.ours == ours; });
        };
        if (name.empty() && !is_said("context_vectors")) return ArrayId("context_vectors");
        // attn's own operands are not taken for what other programs call so.
        const auto ours = find_array(name);
        if (ours && (Evaluator::has(*ours) || view_.head().has_layout()))
            return exists(*ours) && !is_said(*ours) ? ours : std::nullopt;
        // dq may be the gradient of the operand or, in a layer, of the projected queries.
        for (const NameRow& other : all_other_names) {
            const bool has_name = other.table == "result" &&
                                  other.names.find(" " + name + " ") != std::string_view::npos;
            if (!has_name || view_.find(other.of) != nullptr) continue;
            const auto meant = find_array(other.of);
            if (meant && exists(*meant) && !is_said(*meant)) return meant;
        }
        return std::nullopt;
    }

    /// Of `--names`: both sides must exist.
    void check_names() const {
        for (const NamePair& pair : options_.names) {
            const std::string ours(pair.ours.row().name);
            const std::string location =
                "--names " + (pair.theirs.empty() ? ours : pair.theirs + "=" + ours);
            if (!exists(pair.ours))
                throw Error(ErrorKind::usage, location, "the question has no ", ours,
                            "; expected an array that attn computes for it");
            const std::string& theirs = pair.theirs.empty() ? ours : pair.theirs;
            if ((pair.theirs.empty() && view_.is_one_array()) || view_.find(theirs) != nullptr)
                continue;
            const bool is_nameless = view_.is_one_array() && own_name(view_.arrays()[0]).empty();
            throw Error(
                ErrorKind::usage, location,
                is_nameless
                    ? "the array of " + view_.location() + " has no name; expected --names " + ours
                    : "no such array in " + view_.location() + "; expected " +
                          (pair.theirs.empty() ? "--names THEIRS=" + ours + " with one of " : "") +
                          listed_names(view_.arrays()));
        }
    }

    [[noreturn]] void fail_without_arrays() {
        // Reading reports an array that the command line names and the file lacks.
        if (!file_.array.empty()) read_numbers(view_.arrays().front());
        std::vector<std::string> known;
        for (std::size_t i = 0; i < emitted_arrays.size(); ++i)
            if (exists(ArrayId(i)) && !emitted_arrays[i].is_parameter())
                known.emplace_back(emitted_arrays[i].name);
        std::string way = "expected --names THEIRS=OURS, such as " + view_.arrays().front().name +
                          "=context_vectors";
        for (const io::ArrayView& array : view_.arrays()) {
            if (const auto ours = find_array(array.name);
                ours && (ours->row().needs & needs::backward) != 0 && !plan_.config.backward)
                throw Error(ErrorKind::usage, view_.location(), array.name, " requires --backward");
            const std::string near = did_you_mean(array.name, known);
            if (near.empty()) continue;
            way = "did you mean --names " + array.name + "=" + near + "?";
            break;
        }
        throw Error(ErrorKind::usage, view_.location(),
                    "no array has a name of attn's: ", listed_names(view_.arrays()), "; ",
                    io::one_line(way));
    }

    /// The bytes of a text array as they are written; empty for binary files.
    std::string_view text_of_array(const io::ArrayView& array) const {
        if (!view_.is_text()) return {};
        if (!array.in_file && !file_.holds_object()) return file_.source->text;
        const io::FileArray found =
            array.in_file ? array.in_file : io::array_in(file_, file_.array);
        return found ? found.document->text(found.member) : std::string_view();
    }

    /// The --precision of attn's own text.
    std::optional<int> stated_decimals(ArrayId ours) const {
        const auto decimals = view_.head().number("precision");
        if (!decimals || !view_.is_text() || holds_keys(ours)) return std::nullopt;
        return static_cast<int>(std::min<std::uint64_t>(*decimals, 400));
    }

    /// The type of attn's own text.
    std::optional<NumberType> stated_type() const {
        return is_result(file_) ? view_.dtype() : std::nullopt;
    }

    io::ViewedNumbers read_numbers(const io::ArrayView& array) {
        constexpr std::size_t highest_rank = 8;  // with axes of size 1
        return view_.read(array, pool_, options_.csv, nullptr, highest_rank);
    }

    GivenArray given(ArrayId ours, const io::ArrayView& array) {
        io::ViewedNumbers numbers = read_numbers(array);
        GivenArray given{ours,
                         own_name(array),
                         numbers.values.shape(),
                         {numbers.values.begin(), numbers.values.end()}};
        if (given.name.empty()) given.name = ours.row().name;
        if (array.type) {
            given.type = *array.type;
        } else if (const auto decimals = stated_decimals(ours)) {
            given.type = stated_type().value_or(NumberType::float64);
            given.printed = PrintedDigits{*decimals, PrintedDigits::all};
        } else if (!numbers.integers) {
            // attn's own text without --precision has all digits.
            const auto stated = stated_type();
            const NumberType dtype = plan_.config.dtype;
            TextNumbers text =
                stated ? TextNumbers{{}, *stated} : text_numbers(text_of_array(array));
            if (!stated && is_rounded(dtype)) {
                const bool are_exact = !text.are_padded && are_decimals_of(dtype, given.values);
                if (are_exact) text.printed.reset();
                if (are_exact || text.printed) text.type = dtype;
            }
            given.type = text.type;
            given.printed = text.printed;
            if (!text.printed && given.type != NumberType::float64)
                for (double& x : given.values) x = row_of(given.type).round(x);
        }
        if (options_.type) given.type = *options_.type;
        // Integers of a binary file were not rounded to a smaller type.
        const bool are_integers = numbers.integers && !view_.is_text() && !holds_keys(ours);
        given.type_is_certain = options_.type.has_value() || are_integers;
        given.address = array.address;
        if (!holds_keys(ours)) set_words(given, array, are_integers);
        return given;
    }

    /// Sets the words that its numbers were rounded to, if the file or a flag says so. Integers of
    /// a binary file that does not say it are the words themselves.
    void set_words(GivenArray& given, const io::ArrayView& array, bool are_integers) const {
        given.words = options_.words ? options_.words : array.words;
        // With --type the steps were rounded to that type, too.
        const bool has_steps = given.words && !given.words->is_integer() && options_.type;
        if (has_steps) given.words.reset();
        if (!given.words && options_.as_words && !are_integers)
            given.words = StoredType{.kind = given.type};
        if (!given.words) return;
        if (are_integers && !array.words)
            for (double& x : given.values) x *= given.words->step();
        given.type = options_.type.value_or(plan_.config.dtype);
        given.type_is_certain = true;
    }

    const io::InputFile& file_;
    const TheirOptions& options_;
    const Plan& plan_;
    ThreadPool& pool_;
    io::ResultView view_;
};

}  // namespace

std::vector<NamePair> read_names(const std::string& list) {
    std::vector<NamePair> names;
    const std::string location = "--names " + io::shortened(list);
    for (auto& [theirs, ours] : name_pairs(split_list(list), location))
        names.push_back({std::move(theirs), array_of(ours, location)});
    return names;
}

TheirFile read_theirs(const io::InputFile& file, const TheirOptions& options, const Plan& plan,
                      ThreadPool& pool) {
    return TheirReader(file, options, plan, pool).read();
}

}  // namespace attn::cli
