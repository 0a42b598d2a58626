
// ---- The selection, and its listeners

let map;  // the current array: its axes, labels and matrices

const chosen = {
    array: null,        // its index in contents.arrays
    panel: 0,           // the matrix
    isMean: false,      // instead of it, the mean of the heads of its layer and batch entry
    without: new Set(), // heads that are excluded from the mean and the lines
    row: null,          // the query, as a row of the map; null until the first numbers are read
    column: 0,          // the key, as a column
    by: 'row',          // 'row': what the query attends to, 'column': who attends to the key
    scale: contents.scale,
    view: 'map',        // or 'grid': all matrices, small
};

const listeners = [];

/// `listener(before, next)` is called after each change, with the previous selection, whose array
/// is null at first, and with the requested one.
function onChange(listener) {
    listeners.push(listener);
}

/// Indices beyond the end become the last one.
function choose(next) {
    const before = {...chosen};
    Object.assign(chosen, next);
    if (chosen.array !== before.array) map = mapAt(chosen.array);
    const within = (index, size) => Math.min(Math.max(index, 0), size - 1);
    chosen.panel = within(chosen.panel, map.panels.length);
    chosen.column = within(chosen.column, map.columns.size);
    if (chosen.row !== null) chosen.row = within(chosen.row, map.rows.size);
    chosen.isMean &&= hasHeads();
    if (map.panels.length < 2) chosen.view = 'map';
    for (const listener of listeners) listener(before, next);
}

/// Set until a request of the user is done.
const pause = () => new Promise((go) => setTimeout(go, 0));

/// Any number of requests before the next frame is executed once, then.
function oncePerFrame(act) {
    let isWaiting = false;
    return () => {
        if (isWaiting) return;
        isWaiting = true;
        requestAnimationFrame(() => {
            isWaiting = false;
            act();
        });
    };
}

/// The index of a matrix on each of the axes.
function placesOf(panel) {
    const places = [];
    for (const axis of [...map.axes].reverse()) {
        places.unshift(panel % axis.size);
        panel = Math.floor(panel / axis.size);
    }
    return places;
}

const panelAt = (places) => map.axes.reduce((at, axis, i) => at * axis.size + places[i], 0);

const hasHeads = () => map.axes.at(-1)?.name === 'head';

/// The matrices of the selected layer and batch entry: its heads.
function besides() {
    const size = map.axes.at(-1)?.size ?? 1, first = chosen.panel - chosen.panel % size;
    return Array.from({length: size}, (_, i) => first + i);
}

/// Those of them that are not excluded.
const headPanels = () => hasHeads() ? besides().filter((_, head) => !chosen.without.has(head)) : [];

/// Those that the mean includes: all if all are excluded.
const meanPanels = () => headPanels().length > 0 ? headPanels() : besides();

/// `head 3`, or what a layer is called.
const axisLabel = (axis, index) => axis.labels?.[index] ?? `${axis.name} ${index}`;

let lastMean = {};

/// The mean of at least one matrix; masked if all of them are. A weight that is masked in some
/// counts as 0 there, as in --average-heads; a masked score does not count.
async function meanOf(of, panels) {
    const key = panels.join();
    if (lastMean.of === of && lastMean.key === key) return lastMean.mean;
    let mean = null, counts;
    for (const panel of panels) {
        const {numbers, flags, hasMasked} = await numbersOf(of, panel);
        mean ??= {numbers: new Float64Array(numbers.length), flags: new Uint8Array(numbers.length),
                  hasMasked: false, meanOf: panels.length};
        counts ??= new Uint16Array(numbers.length);
        mean.hasMasked ||= hasMasked;
        for (let i = 0; i < numbers.length; ++i) {
            if (flags[i]) continue;
            mean.numbers[i] += numbers[i];
            ++counts[i];
        }
    }
    counts.forEach((count, i) => {
        if (count > 0) mean.numbers[i] /= of.diverging ? count : panels.length;
        else mean.flags[i] = 1;
    });
    mean.lacksNumber = lacksNumber(mean.numbers, mean.flags);
    lastMean = {of, key, mean};
    return mean;
}
