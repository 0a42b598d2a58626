// The statistics of one text.
#pragma once

#include <cstddef>

#include "cli/model/model.hpp"
#include "cli/scan/scan.hpp"
#include "cli/scan/scan_stats.hpp"
#include "core/base/thread_pool.hpp"

namespace attn::cli {

/// Scans texts one by one; each job has its own. `request` must outlive it.
class TextScanner {
public:
    TextScanner(const ScanRequest& request, std::size_t threads)
        : request_(request), workers_(threads) {}

    /// Errors: those of the record. Throws BeyondShare.
    TextSums scan(const Record& record);

private:
    ModelAsked ask(const Record& record) const;

    const ScanRequest& request_;
    ThreadPool workers_;
    ModelCache models_;
};

}  // namespace attn::cli
