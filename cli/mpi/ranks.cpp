#include "cli/mpi/divided.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "cli/output/output.hpp"
#include "cli/request/errors.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/layer/layer.hpp"
#include "core/layer/stages.hpp"
#include "io/file/output.hpp"
#include "io/file/temporary.hpp"

namespace attn::cli {
namespace {

/// What can be written row by row.
constexpr ArraySet divided_arrays{"logsumexp", "head_outputs", "context_vectors"};

/// Refuses what needs more than some rows of the operands and of the result.
void check_request(const Request& request) {
    const auto refuse = [&](const char* key, const std::string& message) {
        throw setting_error(request, key, message);
    };
    if (row_of(request.settings.mode).mechanism == Mechanism::linear)
        throw Error(ErrorKind::usage, "attn " + std::string(row_of(request.settings.mode).name),
                    "goes through the tokens one after the other, which ranks cannot divide; "
                    "expected one process, or attn batch");
    const bool is_binary = request.format->name == "npy" || request.format->name == "safetensors";
    if (!is_binary || request.output == "-")
        refuse("output", "ranks write one file together; expected -o FILE.npy or .safetensors");
    for (const char* key : {"store", "heatmap", "plot", "save_weights", "head", "dry_run"})
        if (request.has(key))
            refuse(key,
                   "is not for results that ranks write by rows; expected none, or one process");
    if (is_rounded(request.settings.dtype))
        refuse("dtype", "is not computed by ranks; expected float32, float64, or one process");
    for (const char* key : {"score_mod", "prob_mod", "relative_bias", "key_scale", "value_scale",
                            "position_ids", "top_k", "backward"})
        if (request.has(key)) refuse(key, "is not computed by ranks; expected one process");
    if (request.settings.quantised_type)
        refuse("dtype", concat(row_of(*request.settings.quantised_type).name,
                               " is not computed by ranks; expected float32 or float64"));
    for (const char* key : {"past_key", "past_value", "value_input"})
        if (request.has(key))
            refuse(key, "is not divided among ranks; expected all keys in one file");
    for (const char* key : {"example", "text", "text_file", "rand", "randn", "token_ids"})
        if (request.has(key))
            refuse(key, "is not divided among ranks; expected rows in .npy or .safetensors");
}

void refuse_standard_input(const Request& flags) {
    if (flags.names_input() && flags.input != "-") return;
    throw Error(ErrorKind::usage, "attn " + std::string(row_of(flags.settings.mode).name),
                "standard input, which only one rank has; expected files");
}

void check_plan(const Plan& plan) {
    plan.emit.for_each([&](ArrayId id) {
        if (!divided_arrays.has(id))
            throw SettingError(ErrorKind::usage, "emit", id.row().name,
                               " is not divided among ranks; expected --emit "
                               "context_vectors, head_outputs or logsumexp");
    });
    for (const NamedFormula& mask : plan.mask_formulas)
        throw SettingError(ErrorKind::usage, std::string(mask.key),
                           "is not computed by ranks; expected one process");
    if (plan.config.qk_norm)
        throw SettingError(ErrorKind::usage, "qk_norm",
                           "is not computed by ranks; expected one process");
    if (plan.config.mask_method == MaskMethod::renormalize)
        throw SettingError(ErrorKind::usage, "mask_method",
                           "needs each whole row of weights in one process; expected neg-inf");
    if (plan.shown.order != QkvFormat::bhsd)
        throw SettingError(ErrorKind::usage, plan.config.qkv_format ? "qkv_format" : "batch_first",
                           "rows of tokens that are apart are not divided among ranks; expected "
                           "one process");
    if (plan.past_len != 0)
        throw SettingError(ErrorKind::usage, "weights",
                           "add a key that all queries see, which is not divided among ranks; "
                           "expected one process");
}

/// A question, of whose operands the rows are still in their files.
struct OpenQuestion {
    Question question;
    OperandRows rows;
    Plan plan;
};

OpenQuestion open_question(const Args& args, const Runtime& runtime) {
    const Request flags = make_request(args);
    refuse_standard_input(flags);
    RequestWithInput asked = open_request(flags);
    plan_output(asked.request);
    check_request(asked.request);
    OpenQuestion open;
    open.question = read_question(std::move(asked), runtime, &open.rows);
    open.plan = plan_of(open.question, {});
    at_locations(open.question.request, [&] { check_plan(open.plan); });
    return open;
}

/// Each rank opens the files itself: they may differ between machines, or change in the meantime.
/// Ranks with different sizes would wait for each other forever. Errors: kind shape.
void require_same_shapes(const OperandShapes& operands, const Communicator& world) {
    for (const OperandRow& row : operand_rows) {
        const std::string own = shape_text(operands[row]), first = world.from_first(own);
        world.together([&] {
            if (own != first)
                throw Error(ErrorKind::shape, row.key, own, " on rank ", world.rank(), ", ", first,
                            " on rank 0; expected the same file on every rank");
        });
    }
}

/// The same for settings and parameters, which a model's files determine. Errors: kind shape.
void require_same_plans(const OpenQuestion& open, const Communicator& world) {
    std::string own;
    for (const auto& [key, value] : head_of(open.question.request, open.plan))
        own += key + " " + value + "\n";
    const Settings& s = open.plan.config;
    for (const bool exists : {s.qkv_bias, *s.out_proj, *s.out_bias})
        own += exists ? "true " : "false ";
    const std::string first = world.from_first(own);
    world.together([&] {
        if (own != first)
            throw Error(ErrorKind::shape, "rank " + std::to_string(world.rank()),
                        "has other settings or sizes than rank 0; expected the same files on "
                        "every rank");
    });
}

/// The plan of a share's batch entries and heads.
Plan plan_of_share(const Plan& plan, const Share& share) {
    Plan part = plan;
    part.batch = share.batches.count;
    part.heads = share.heads.count;
    part.kv_heads = share.kv_heads.count;
    return part;
}

/// Errors: kind input, if the rows of the ranks on this machine need too much memory: of each, its
/// queries, keys and values, another rank's keys and values, and the context in float64.
void require_memory_of_share(const Plan& part, const Share& share, std::size_t ranks) {
    const auto rows = [&](std::size_t length) {
        return static_cast<double>(part.batch * (length + share.ring_size - 1)) /
               static_cast<double>(share.ring_size);
    };
    const auto element = static_cast<double>(row_of(part.config.dtype).size),
               key = static_cast<double>(part.kv_heads * (part.d_k + part.d_v)),
               query = static_cast<double>(part.heads * (part.d_k + 2 * part.d_v)),
               sums = static_cast<double>(part.heads * part.d_v * sizeof(double));
    const std::string all = ranks == 1 ? "one rank" : std::to_string(ranks) + " ranks";
    require_memory(
        rows(part.kv_len) * 2 * key * element + rows(part.rows) * (query * element + sums),
        part.projects ? "inputs" : "query", "the work of " + all + " on this machine",
        static_cast<double>(ranks));
}

/// The header of the file, and where each array's elements begin.
struct FileLayout {
    std::string header;
    std::map<std::size_t, std::uint64_t> offsets;  ///< by ArrayId::index
};

/// The layout of the answer in the request's format, npy or safetensors. All ranks have the same.
FileLayout layout_of(const Question& question, const Plan& plan, ThreadPool& workers) {
    Result result{{}, {}, draws_of(plan).end};
    FileLayout layout;
    std::uint64_t elements = 0;
    plan.emit.for_each([&](ArrayId id) {
        // Writers write what comes before the elements. Arrays of one type follow in order.
        NamedArray array{std::string(id.row().name), {}, plan.axes_of(id)};
        array.stream = stream_without_rows(plan.shape_of(id), plan.config.dtype);
        result.arrays.push_back(std::move(array));
        layout.offsets[id.index] = elements * row_of(plan.config.dtype).size;
        elements += plan.numbers<std::uint64_t>(id);
    });
    const io::Report report = make_report(question.request, plan, std::move(result), workers);
    io::TextOutput header;
    write_report(header, question.request, report);
    layout.header = std::move(header.text());
    for (auto& [index, offset] : layout.offsets) offset += layout.header.size();
    return layout;
}

/// Writes some elements of an array, from a byte of it on.
using WriteBytes = FunctionRef<void(ArrayId array, std::uint64_t first, std::string_view bytes)>;

/// Writes the file by all ranks, each calling `write_rows(write)`.
/// The file has its name only if all ranks have written; otherwise there is none. Errors: kind io,
/// on one rank; FailedElsewhere on the others.
void write_divided(const std::string& path, const FileLayout& layout, const Communicator& world,
                   FunctionRef<void(WriteBytes write)> write_rows) {
    std::optional<io::OutputFile> created;  // by rank 0
    world.together([&] {
        if (world.rank() != 0) return;
        created.emplace(path);
        if (created->is_in_place())
            throw Error(
                ErrorKind::usage, path,
                "is not a file on a disk, so ranks cannot write their rows to it; expected one");
        created->fill([&](io::Output& to) { to << layout.header; });
    });
    const std::string unfinished =
        world.from_first(created ? created->unfinished_name() : std::string());
    std::optional<io::SharedFile> file;
    // From here on, whichever rank is killed, the others remove the file.
    world.together([&] { file.emplace(unfinished, path); });
    world.together([&] {
        write_rows([&](ArrayId array, std::uint64_t first, std::string_view bytes) {
            file->write(layout.offsets.at(array.index) + first, bytes);
        });
        file->finish();
    });
    world.together([&] {
        if (created) created->commit();
    });
    file->leave();
}

/// Writes a chunk's rows, which begin at `first_row` of the result. `part` is the plan of the
/// share.
template <class T>
void write_chunk(const OpenQuestion& open, const Share& share, const Plan& part,
                 const LayerParts<T>& parts, RingResult<T> result, std::size_t first_row,
                 ThreadPool& pool, WriteBytes write) {
    const ArraySet& emit = open.plan.emit;
    // (batch, heads, rows, columns) of the share; joined heads are one.
    const auto write_rows = [&](ArrayId array, const Tensor4<T>& values, bool are_joined = false) {
        if (!emit.has(array)) return;
        const auto& shape = values.shape();
        const std::size_t heads = are_joined ? 1 : part.heads * share.head_parts,
                          first_head = are_joined ? 0 : share.heads.first,
                          row_bytes = shape[3] * sizeof(T), matrix_bytes = shape[2] * row_bytes;
        const std::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                     values.size() * sizeof(T));
        for (std::size_t i = 0; i < shape[0] * shape[1]; ++i) {
            const std::size_t matrix =
                (share.batches.first + i / shape[1]) * heads + first_head + i % shape[1];
            write(array, (matrix * open.plan.rows + first_row) * row_bytes,
                  bytes.substr(i * matrix_bytes, matrix_bytes));
        }
    };
    write_rows("logsumexp", result.logsumexp);
    write_rows("head_outputs", result.context);
    if (!emit.has("context_vectors")) return;
    if (part.shown.separate_heads) return write_rows("context_vectors", result.context);
    Tensor4<T> context = merge_heads(result.context);
    Recorder nothing({}, part.shown);
    if (parts.weights != nullptr && parts.weights->out)
        context =
            Stages<T>{part, pool, nothing}.project_out(*parts.weights->out, std::move(context));
    write_rows("context_vectors", context, true);
}

template <class T>
void run_share(OpenQuestion& open, const Share& share, const Plan& part, LayerParts<T>& parts,
               const FileLayout& layout, const Communicator& world, ThreadPool& pool) {
    const Communicator ring = world.split(share.ring);
    const Request& request = open.question.request;
    OwnRows<T> own;
    world.together([&] {
        at_locations(request, [&] {
            own = read_own_rows(part, share, open.rows, open.question.operands, parts.weights.get(),
                                pool);
        });
    });
    std::array<std::size_t, 2> first_rows{};
    for (std::size_t i = 0; i < first_rows.size(); ++i)
        first_rows[i] = own.queries[i].first - open.plan.first_query;
    std::array<RingResult<T>, 2> results =
        attend_in_ring(part, parts.call, std::move(own), ring, world, pool);
    write_divided(request.output, layout, world, [&](auto write) {
        for (std::size_t i = 0; i < results.size(); ++i)
            write_chunk(open, share, part, parts, std::move(results[i]), first_rows[i], pool,
                        write);
    });
}

/// Each rank reads some rows of the operands, computes its share of the answer (division.hpp) and
/// writes its rows of the one output file. Errors: those of run_mode, and kind usage for a
/// question that cannot be divided. One rank throws the error and the others FailedElsewhere; no
/// output file is left.
void run_divided(const Args& args, const Communicator& world) {
    ThreadPool pool;
    io::LoadedModels models;
    const Runtime runtime{pool, models};
    std::optional<OpenQuestion> open;
    world.together([&] { open = open_question(args, runtime); });
    require_same_shapes(open->plan.operands, world);
    require_same_plans(*open, world);
    world.together([&] {
        const auto notes = check_output_size(open->question.request, open->plan, {});
        if (world.rank() == 0) show_notes(notes);
    });
    const Share share = share_of(open->plan, world.rank(), world.size());
    const Plan part = plan_of_share(open->plan, share);
    const std::size_t neighbours = world.on_this_machine();
    FileLayout layout;
    AnyLayerParts parts;
    world.together([&] {
        at_locations(open->question.request, [&] {
            require_memory_of_share(part, share, neighbours);
            layout = layout_of(open->question, open->plan, pool);
            parts = take_parts(part, open->question.operands);
        });
    });
    std::visit([&](auto& own) { run_share(*open, share, part, own, layout, world, pool); }, parts);
    if (world.rank() == 0) show_notes(open->question.notes);
}

/// Variables that launchers set: Open MPI, MPICH and Intel MPI, PMIx as Slurm and others use it.
constexpr const char* launcher_variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};

bool is_launched() {
    return std::ranges::any_of(launcher_variables,
                               [](const char* name) { return std::getenv(name) != nullptr; });
}

/// The shard of a batch that this rank answers, unless the command line gives one. Errors: kind
/// usage for what only one process can read or write.
Args with_shard(Args args, std::size_t rank, std::size_t ranks) {
    const std::string number = std::to_string(ranks) + " ranks";
    if (!args.has("shard")) {
        if (!args.has("out_dir"))
            throw Error(ErrorKind::usage, "attn batch", number,
                        " cannot write one text; expected --out-dir DIR, or --shard with "
                        "another --output for each rank");
        args.flags.push_back({find_option(args.command->own, "shard"),
                              std::to_string(rank + 1) + "/" + std::to_string(ranks)});
    }
    if (args.words.empty() || std::ranges::count(args.words, std::string("-")) != 0)
        throw Error(ErrorKind::usage, "attn batch", "standard input, which only one of ", number,
                    " has; expected files");
    return args;
}

/// Whether the first rank alone answers: a page, or a message of the command line's parser.
bool is_for_first(const Args& args) {
    return !args.message.empty() || args.command->name == "help";
}

/// Errors: kind usage for a command that several ranks cannot run.
void check_command(const Args& args, std::size_t ranks) {
    if (is_for_first(args) || ranks == 1 || args.command->mode != nullptr ||
        args.command->name == "batch")
        return;
    throw Error(ErrorKind::usage, "attn " + std::string(args.command->name),
                "is not divided among ", ranks,
                " ranks; expected a mode, attn batch, or one process");
}

int run_together(const Communicator& world, FunctionRef<Args()> parse,
                 FunctionRef<int(const Args&)> run) {
    Args args;
    world.together([&] {
        args = parse();
        check_command(args, world.size());
    });
    if (is_for_first(args) && world.rank() != 0) return args.exit_code;
    if (is_for_first(args) || world.size() == 1) return run(args);
    int code = 0;
    if (args.command->mode != nullptr)
        run_divided(args, world);
    else
        world.together([&] { code = run(with_shard(args, world.rank(), world.size())); });
    return code;
}

}  // namespace

std::optional<int> run_on_ranks(FunctionRef<Args()> parse, FunctionRef<int(const Args&)> run) {
    if (!is_launched()) return {};
    const Communicator world = Communicator::world();
    try {
        return run_together(world, parse, run);
    } catch (const FailedElsewhere& failure) {
        return failure.exit_code;
    } catch (...) {
        // While MPI still runs: when the first rank exits with this code, mpirun ends the others.
        return show_error(current_error());
    }
}

}  // namespace attn::cli
