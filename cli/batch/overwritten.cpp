#include "cli/batch/overwritten.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/batch/records.hpp"
#include "cli/model/model.hpp"
#include "cli/question/model_source.hpp"
#include "cli/request/options.hpp"
#include "io/file/path.hpp"
#include "io/read/input_file.hpp"
#include "io/read/json_document.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {
namespace {

void check_operand(const std::string& path) {
    io::guard_read(io::split_data_path(path).file);
}

bool is_file_of_model(const std::string& key) {
    const auto is_it = [&](const Option& option) {
        return option.key == key && names_file(option);
    };
    return std::any_of(model_command.own.begin(), model_command.own.end(), is_it) ||
           std::any_of(model_command.keys.begin(), model_command.keys.end(), is_it);
}

/// The files of a record of mode model.
void check_model(const Request& defaults, const std::string& path) {
    io::guard_read(path);
    const io::ModelFolder files =
        io::open_model_folder(path, defaults.model_config, defaults.access);
    const std::string tokenizer = files.folder + "/tokenizer.json";
    if (!files.folder.empty() && io::path_exists(tokenizer)) io::guard_read(tokenizer);
}

/// `model` is that of the record before.
void check_record(const Record& record, const Request& defaults, io::LoadedModels& models,
                  std::string& model) {
    const io::Source source = source_of(record);
    const io::JsonDocument document = io::JsonDocument::as_far_as_it_reads(source);
    for (const io::JsonMember& member : document.members()) {
        if (!names_file(member.key) && !is_file_of_model(member.key)) continue;
        const nlohmann::json value = document.read_value(member);
        if (!value.is_string()) continue;
        const std::string path = io::path_beside(record.file, value.get<std::string>());
        if (member.key == "weights")
            open_model_files(defaults, models, path);
        else if (member.key != "model")
            check_operand(path);
        else if (std::exchange(model, path) != path)
            check_model(defaults, path);
    }
}

}  // namespace

void check_flags(const BatchRequest& batch, io::LoadedModels& models) {
    const Request& defaults = batch.defaults;
    for (const std::string& file : batch.flag_files) io::guard_read(file);
    for (const auto& [key, path] : defaults.operand_files)
        if (key != "weights") check_operand(path);
    if (defaults.model_config) check_operand(*defaults.model_config);
    if (defaults.has_file("weights"))
        open_model_files(defaults, models, defaults.operand_files.at("weights"));
}

void check_records(const BatchRequest& batch, io::LoadedModels& models, const Stop& stop) {
    if (batch.defaults.no_files) return;
    std::vector<BatchInput> files;
    std::copy_if(batch.inputs.begin(), batch.inputs.end(), std::back_inserter(files),
                 is_regular_file);
    RecordReader records(files, {}, stop);  // all shards: other batches read the others
    std::string model;
    for (Record record; records.next(record) == io::Next::found;) {
        try {
            check_record(record, batch.defaults, models, model);
        } catch (const io::WrittenFile&) {
            throw;
        } catch (const Error&) {  // reported in the record's answer
        }
    }
}

}  // namespace attn::cli
