#include "cli/check/check.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <set>
#include <tuple>
#include <utility>

#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "io/file/output.hpp"
#include "io/file/screen.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {
namespace {

/// Refuses settings that change no number.
void check_question_settings(const Request& request, const CheckRequest& asked) {
    if (is_from_flag(request, "precision"))
        throw setting_error(request, "precision",
                            "the numbers are not written; expected no precision");
    if (is_from_flag(request, "kernel") && request.settings.kernel != "auto")
        throw setting_error(request, "kernel",
                            "the numbers are computed in float64, by no kernel; expected auto");
    if (asked.search && !request.settings.head.empty())
        throw setting_error(request, "head", "the search needs all heads; expected no such flag");
}

/// Numbers in float64: the operands, what is projected, and the arrays that dropout draws; the
/// search's masks are bytes.
double bytes_of_problem(const Plan& plan, bool search) {
    const double inputs = product_of_sizes(plan.batch, plan.q_len + plan.kv_len, plan.d_in),
                 queries = product_of_sizes(plan.batch, plan.heads, plan.q_len, plan.d_k),
                 keys =
                     product_of_sizes(plan.batch, plan.kv_heads, plan.kv_len, plan.d_k + plan.d_v),
                 weights = product_of_sizes(plan.batch, plan.heads, plan.rows, plan.kv_len);
    constexpr double copies = 6;  // values and bounds, before and after rotation, of two types
    const double drawn = plan.config.dropout == 0 ? 0 : (search ? 4 : 2) * weights;
    constexpr double copies_of_parameters = 5;  // also of the output projection's
    const double projections =
        copies_of_parameters *
        product_of_sizes(plan.d_in, plan.heads * plan.d_k + plan.kv_heads * (plan.d_k + plan.d_v));
    // Gradients have a value, a bound and a variance: of each head, and of what heads are made of.
    constexpr double lanes = 3, copies_of_gradients = 4;
    const double heads = static_cast<double>(plan.heads) / static_cast<double>(plan.kv_heads),
                 gradients = plan.config.backward
                                 ? lanes * (copies_of_gradients * (queries + heads * keys) +
                                            inputs + projections / copies_of_parameters)
                                 : 0;
    return sizeof(double) * (inputs + copies * (queries + keys) + projections + drawn + gradients);
}

PlannedQuestion planned_question(RequestWithInput asked, const CheckRequest& request,
                                 const Runtime& runtime) {
    // The flags of CSV are for the arrays of --against, too.
    for (const HelpOverride& of_csv : csv_help)
        asked.request.locations.erase(std::string(of_csv.key));
    Question question = read_question(std::move(asked), runtime);
    check_question_settings(question.request, request);
    // The question's own computation only draws what is drawn.
    std::vector<std::string> emit{"context_vectors"};
    if (question.request.settings.top) emit.insert(emit.end(), {"top_keys", "top_weights"});
    PlannedQuestion planned = plan_question(std::move(question), {.emit = std::move(emit)});
    at_locations(planned.question.request, [&] {
        require_memory(bytes_of_problem(planned.plan, request.search), "attn check",
                       "the question in float64 with bounds on its errors");
    });
    return planned;
}

/// Right ones first, then by the largest error; the order of the command line among equals.
std::vector<ProgramJudgement> best_first(std::vector<ProgramJudgement> programs) {
    const auto key = [](const ProgramJudgement& program) {
        std::size_t wrong = 0;
        double bound = 0;
        for (const ArrayJudgement& array : program.arrays) {
            wrong += array.verdict == Verdict::wrong ? 1U : 0U;
            bound = std::max(bound, array.layout ? array.bound : HUGE_VAL);
        }
        return std::tuple(program.verdict, wrong, bound);
    };
    std::ranges::stable_sort(programs, {}, key);
    return programs;
}

}  // namespace

void check_standard_input(const CheckRequest& request) {
    io::require_one_standard_input(request.against);
    if (std::none_of(request.against.begin(), request.against.end(), io::is_standard_input)) return;
    const Request& flags = request.flags;
    const bool is_also_question =
        io::is_standard_input(flags.input) || !flags.names_input() ||
        std::any_of(flags.operand_files.begin(), flags.operand_files.end(),
                    [&](const auto& operand) { return io::is_standard_input(operand.second); });
    if (is_also_question)
        throw Error(ErrorKind::usage, "--against -",
                    "standard input is also the question's; expected a file for one of them");
}

CheckedQuestion::CheckedQuestion(RequestWithInput asked, const CheckRequest& request,
                                 const Runtime& runtime)
    : CheckedQuestion(planned_question(std::move(asked), request, runtime), request, runtime) {}

CheckedQuestion::CheckedQuestion(PlannedQuestion planned, const CheckRequest& request,
                                 const Runtime& runtime)
    : asked_(request), pool_(runtime.pool), request_(std::move(planned.question.request)),
      notes_(std::move(planned.question.notes)), theirs_{request.names.empty()
                                                             ? std::vector<NamePair>()
                                                             : read_names(request.names),
                                                         request.type, request.words,
                                                         request.exact || request.limits.units,
                                                         request_.csv},
      problem_(at_locations(
          request_,
          [&] { return exact_question(planned.plan, planned.question.operands, pool_); })),
      operands_(request.search ? std::move(planned.question.operands) : Operands()),
      judge_(problem_, request.limits, pool_) {
    if (request_.read_layout == JoinedHeads::parts) problem_.other_layout = HeadSplit::packed;
    if (request_.read_layout == JoinedHeads::groups) problem_.other_layout = HeadSplit::unpacked;
}

ProgramJudgement CheckedQuestion::judge(const io::InputFile& theirs) {
    TheirFile file = read_theirs(theirs, theirs_, problem_.plan, pool_);
    const bool lists_keys =
        std::any_of(file.arrays.begin(), file.arrays.end(), [](const GivenArray& array) {
            return array.id == "top_keys" || array.id == "top_weights";
        });
    if (is_from_flag(request_, "top") && !lists_keys)
        throw setting_error(
            request_, "top",
            "requires top_keys or top_weights; expected one of them in " + file.path);
    ProgramJudgement judgement;
    judgement.path = std::move(file.path);
    judgement.not_compared = std::move(file.not_compared);
    judge_.begin_program();
    for (const GivenArray& given : file.arrays) {
        judgement.arrays.push_back(judge_.judge(given));
        judgement.verdict = std::max(judgement.verdict, judgement.arrays.back().verdict);
    }
    if (file.fits) {
        const std::string name(file.fits->row().name);
        judgement.arrays[0].finding +=
            ", but fits " + name + "; if it holds them, expected --names " + name;
    }
    judgement.is_searched = asked_.search;
    if (asked_.search && judgement.verdict == Verdict::wrong) {
        // The verdict holds without the search.
        const auto note = [&](const std::string& why) {
            judgement.matches.clear();
            judgement.is_searched = false;
            notes_.push_back(judgement.path + ": --search " + why +
                             "; the verdict does not depend on it");
        };
        try {
            search(judgement, file.arrays, SearchOptions().max_changes);
        } catch (const std::bad_alloc&) {
            note("ran out of memory");
        } catch (const SettingError& error) {
            note(std::string("was left out: ") + error.what());
        }
    }
    name_type(judgement, file.arrays);
    for (GivenArray& given : file.arrays) {
        given.values.clear();
        judgement.given.push_back(std::move(given));
    }
    return judgement;
}

/// Of arrays that are wrong in the types that they are stored in, names the most precise type that
/// all fit, if nothing else explains them: numbers of a smaller type are often stored in a larger
/// one.
void CheckedQuestion::name_type(ProgramJudgement& judgement, const std::vector<GivenArray>& given) {
    const auto wrong =
        std::find_if(judgement.arrays.begin(), judgement.arrays.end(),
                     [](const ArrayJudgement& array) { return array.verdict == Verdict::wrong; });
    if (wrong == judgement.arrays.end() || asked_.type || asked_.limits.are_given()) return;
    if (given[static_cast<std::size_t>(wrong - judgement.arrays.begin())].words) return;
    for (const auto& [type, type_name] : judged_types) {
        judge_.free_memory();
        if (!fits_type(judgement, given, type)) continue;
        if (has_other_cause(judgement, given)) return;
        const std::string name(type_name);
        wrong->finding += (wrong->finding.empty() ? "" : "; ") + ("within the bound of " + name) +
                          "; if that is what the program " + "computes in, expected --type " + name;
        return;
    }
}

/// Whether all arrays are within the bounds of the type, and the errors of those that are wrong are
/// as large as such a program's: the bounds of the smaller types hold many a wrong program, too.
bool CheckedQuestion::fits_type(const ProgramJudgement& judgement,
                                const std::vector<GivenArray>& given, NumberType type) {
    constexpr double smallest_part = 0.4, largest_part = 4;
    const bool rounds_factors = type > NumberType::float32;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const ArrayJudgement& array = judgement.arrays[i];
        if (!array.layout || array.is_right_if_transposed || type <= given[i].type ||
            array.unlike != 0)
            return false;
        if (rounds_factors && array.verdict == Verdict::wrong && !holds_keys(array.id)) {
            const double expected = judge_.error_of_factors(array.id, type);
            if (array.rms < smallest_part * expected || array.rms > largest_part * expected)
                return false;
        }
        if (judge_.judge_as(given[i], *array.layout, type).verdict == Verdict::wrong) return false;
    }
    return true;
}

/// Whether one change of conventions other than roundings reproduces wrong arrays, or may: the
/// search needs all heads.
bool CheckedQuestion::has_other_cause(const ProgramJudgement& judgement,
                                      const std::vector<GivenArray>& given) {
    if (!request_.settings.head.empty()) return true;
    ProgramJudgement searched = judgement;
    try {
        if (!judgement.is_searched) search(searched, given, 1);
    } catch (const std::bad_alloc&) {
        return true;
    } catch (const SettingError&) {
        return true;
    }
    return std::any_of(searched.matches.begin(), searched.matches.end(), [](const Match& match) {
        return std::none_of(match.changes.begin(), match.changes.end(), [](const Change& change) {
            return change.convention->name == "precision";
        });
    });
}

/// Only arrays with a number for each head and element of attn's can be reproduced.
void CheckedQuestion::search(ProgramJudgement& judgement, const std::vector<GivenArray>& given,
                             std::size_t max_changes) {
    std::vector<TheirArray> theirs;
    std::vector<std::size_t> indices;  // of each in `given`
    for (std::size_t i = 0; i < given.size(); ++i) {
        const ArrayJudgement& array = judgement.arrays[i];
        if (!array.layout || holds_keys(array.id) || problem_.plan.shown.averages(array.id))
            continue;
        theirs.push_back(in_layout(given[i], *array.layout, problem_.plan, array.type));
        indices.push_back(i);
    }
    if (theirs.empty()) return;
    if (asked_.search && problem_.asked.drops && problem_.other_dropouts.empty())
        draw_other_dropouts(problem_);
    if (search_layouts(judgement, given, theirs, indices, max_changes) || max_changes < 2) return;
    search_draws(judgement, request_, problem_, operands_, theirs, pool_);
}

/// By the conventions, with the axes of each array as they were judged, and then in other orders.
bool CheckedQuestion::search_layouts(ProgramJudgement& judgement,
                                     const std::vector<GivenArray>& given,
                                     const std::vector<TheirArray>& theirs,
                                     const std::vector<std::size_t>& indices,
                                     std::size_t max_changes) {
    judge_.free_memory();
    std::set<NumberType> types;
    for (const TheirArray& array : theirs) types.insert(array.type);
    require_memory(bytes_of_problem(problem_.plan, asked_.search) +
                       bytes_of_search(problem_.plan, types.size(), pool_.threads()),
                   "--search", "it");
    io::ProgressLine line(std::chrono::milliseconds(100), io::ProgressLine::End::clear);
    SearchOptions options;
    options.max_changes = max_changes;
    options.progress = [&](std::size_t changes, std::size_t done, std::size_t of) {
        line.show([&] { return search_progress_text(changes, done, of); });
    };
    const auto matches_as = [&](const std::vector<std::pair<std::size_t, Layout>>& layouts) {
        std::vector<TheirArray> read = theirs;
        for (const auto& [i, layout] : layouts)
            read[i] = in_layout(given[indices[i]], layout, problem_.plan, theirs[i].type);
        judgement.matches = search_conventions(problem_, read, options, pool_);
        if (judgement.matches.empty()) return false;
        for (const auto& [i, layout] : layouts) {
            ArrayJudgement& array = judgement.arrays[indices[i]];
            array = judge_.judge_as(given[indices[i]], layout, theirs[i].type);
            judge_.locate(array, given[indices[i]]);
        }
        return true;
    };
    if (matches_as({})) return true;
    if (max_changes < 2) return false;
    // Where several orders of axes fit, the one that was judged is a guess.
    options.max_changes = 2;
    const auto layouts_at = [&](std::size_t i) {
        return layouts_of(problem_.plan, theirs[i].id, given[indices[i]].shape);
    };
    // All arrays in attn's own order at once: if queries, keys and values were all misread in the
    // same way, changing one of them alone leads to no match.
    std::vector<std::pair<std::size_t, Layout>> own;
    for (std::size_t i = 0; i < theirs.size(); ++i)
        if (!judgement.arrays[indices[i]].axes.empty())
            if (const Layout first = layouts_at(i).front(); first.axes.empty())
                own.emplace_back(i, first);
    if (own.size() > 1 && matches_as(own)) return true;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
        const ArrayJudgement& array = judgement.arrays[indices[i]];
        if (array.verdict != Verdict::wrong && array.axes.empty()) continue;
        for (const Layout& layout : layouts_at(i))
            if (layout.axes != array.axes && layout.rank() == 0 && matches_as({{i, layout}}))
                return true;
    }
    return false;
}

void write_verdicts(const CheckRequest& request, FunctionRef<void(io::Output&)> write,
                    const JUnitReport& junit) {
    std::optional<io::OutputFile> other;
    if (!request.junit.empty()) {
        if (io::is_same_output(request.junit, request.flags.output))
            throw Error(ErrorKind::usage, "--junit " + request.junit,
                        "the same file as the report; expected another");
        other.emplace(request.junit);
    }
    io::OutputFile out(request.flags.output);
    out.fill([&](io::Output& to) { write(to); });
    if (other) {
        other->fill([&](io::Output& to) { to << junit.text(); });
        other->commit();
    }
    out.commit();
}

bool check(CheckRequest request, std::vector<std::string>& notes) {
    check_standard_input(request);
    ThreadPool workers;
    io::LoadedModels models;
    CheckedQuestion question(open_request(request.flags, std::move(request.question)), request,
                             {workers, models});
    std::vector<ProgramJudgement> programs;
    JUnitReport junit("attn check");
    for (const std::string& path : request.against) {
        std::vector<io::InputFile> files = io::open_results(path);
        if (files.size() != 1)
            throw Error(ErrorKind::input, files.empty() ? path : files[0].name, "holds ",
                        files.size(), " results; expected one, or many requests to check them by");
        programs.push_back(question.judge(IndexedResults().result_of(std::move(files[0]))));
        junit.add(programs.back());
    }
    notes = question.notes();
    programs = best_first(std::move(programs));
    const auto write = [&](io::Output& to) {
        to << (request.json ? check_json(programs)
                            : check_text(programs, io::screen_columns(STDOUT_FILENO)));
    };
    write_verdicts(request, write, junit);
    return std::ranges::count(programs, Verdict::wrong, &ProgramJudgement::verdict) == 0;
}

}  // namespace attn::cli
