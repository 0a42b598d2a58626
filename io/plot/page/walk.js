
// ---- The walk: how the selected query's row is computed, with the numbers on the page

const mostTerms = 64;       // of a score that is written as a sum
const textsPerVector = 6;   // numbers that are written into a strip's cells
const firstKeys = 8, moreKeys = 32;

/// Every step of a weight, with its array: shown if the page has it and it changed something.
const walkSteps = [
    {name: 'scores', tells: 'query times key'},
    {name: 'scaled_scores', tells: scaleText, from: 'scores'},
    {name: 'capped_scores', tells: 'after the soft cap', from: 'scaled_scores'},
    {name: 'biased_scores', tells: 'with biases and masks', from: 'capped_scores'},
    {name: 'weights_before_dropout', tells: 'the softmax', from: 'attention_weights'},
    {name: 'dropout_mask', tells: 'what dropout kept', from: 1},
];
const walkNeeds = ['queries', 'keys', 'scores', 'values', 'attention_weights'];

let walk = null;         // the contents of the section: arrays by name, and the keys in their order
let walkReading = null;  // a new request cancels the previous one
let walkShown = firstKeys;

/// The matrix of `of` that corresponds to the selected one: of the same layer, batch entry and
/// head, or of the shared head. Null if there is none.
function matrixBeside(of) {
    const places = placesOf(chosen.panel);
    let panel = 0;
    for (const axis of of.axes) {
        const i = map.axes.findIndex((mine) => mine.name === axis.name);
        if (i < 0 && axis.size > 1) return null;
        const shared = i < 0 ? 1 : map.axes[i].size / axis.size;
        if (!Number.isInteger(shared)) return null;
        panel = panel * axis.size + (i < 0 ? 0 : Math.floor(places[i] / shared));
    }
    return panel;
}

/// An array's numbers for the selected head, row by row; null if the page has none that match.
async function walkArray(names, rows, columns) {
    for (const name of names) {
        const index = contents.arrays.indexOf(name);
        if (index < 0) continue;
        const of = mapAt(index), panel = matrixBeside(of), width = of.columns.size;
        const fits = of.rows.size === rows && (columns ?? width) === width;
        if (panel === null || !fits || of.rows.step * of.columns.step > 1) continue;
        if (rows * width > 1e5) await pause();
        const {numbers, flags} = await numbersOf(of, panel);
        return {
            name, of, width,
            row: (index) => numbers.subarray(index * width, (index + 1) * width),
            isMasked: (row, column) => flags[row * width + column] === 1,
        };
    }
    return null;
}

/// Whether attn computed the result, so that it can compute more: then a title begins with the
/// mode, otherwise with the array.
const isOfAttn = () => !map.title.startsWith(map.array);

async function showWalk() {
    const mine = walkReading = {}, section = element('walk');
    section.hidden = map.rows.axis !== 'query' || map.columns.axis !== 'key' || chosen.view !== 'map';
    if (section.hidden || chosen.row === null) return;
    const missing = walkNeeds.filter((name) => !contents.arrays.includes(name));
    const cannotWalk = missing.length > 2 || missing.includes('attention_weights');
    section.hidden = cannotWalk && !isOfAttn();
    if (section.hidden) return;
    const reason = chosen.isMean ? 'A walk is of one head: choose one.'
        : map.rows.step * map.columns.step > 1 ? 'A cell of this map is several elements, so that it has no walk.' : '';
    if (reason) return sayNoWalk(reason);
    const hint = missing.length === 0 ? ''
        : `This page does not hold ${missing.join(', ')}: --emit all --plot-array all puts them into a page.`;
    if (cannotWalk) return sayNoWalk(hint);
    const rows = map.rows.size, columns = map.columns.size;
    const found = {
        queries: await walkArray(['queries'], rows),
        keys: await walkArray(['keys', 'present_key'], columns),
        weights: await walkArray(['attention_weights'], rows, columns),
        values: await walkArray(['values', 'present_value'], columns),
    };
    found.out = await walkArray(['head_outputs', 'context_vectors'], rows, found.values?.width);
    found.mask = await walkArray(['mask'], rows, columns);
    const steps = [];
    for (const step of walkSteps) steps.push({...step, array: await walkArray([step.name], rows, columns)});
    if (mine !== walkReading) return;
    if (!found.weights) return sayNoWalk('The page holds no weights of this head to walk through.');
    walk = {...found, steps: steps.filter((step) => step.array), hint};
    walkShown = firstKeys;
    drawWalk();
}

function sayNoWalk(text) {
    walk = null;
    element('walk-title').textContent = 'Walk';
    element('walk-hint').textContent = text;
    element('walk-steps').hidden = true;
}

// ---- Vectors as strips of colours

const largestOf = (vectors) => vectors.reduce(
    (most, vector) => vector.reduce((size, value) => Math.max(size, Math.abs(value) || 0), most), 0);

const colorIn = (value, full) =>
    redBlue[stepAt({diverging: true}, full > 0 ? value / full : 0, redBlue.length - 1)];

/// `name[place][dimension] = number` below the pointer. `exact` has the program's numbers.
function strip(vector, full, name, exact) {
    const text = (i) => exact ? shortest(vector[i], exact) : `≈ ${Number(vector[i].toPrecision(4))}`;
    const tell = (i) => { element('walk-say').textContent = `${name}[${i}] = ${text(i)}`; };
    const node = made('span', 'strip');
    node.setAttribute('role', 'img');
    node.ariaLabel = `${name}: ${vector.length} numbers up to ${briefText(largestOf([vector]))}`;
    const colors = Array.from(vector, (value) => Number.isFinite(value) ? colorIn(value, full) : noNumber);
    if (vector.length <= textsPerVector) {
        node.classList.add('of-texts');
        vector.forEach((value, i) => {
            const cell = made('span', '', Number.isFinite(value) ? briefSigned(value) : '–');
            cell.style.background = `rgb(${colors[i].join()})`;
            cell.style.color = inkOn(colors[i]);
            cell.title = text(i);
            node.append(cell);
        });
        return node;
    }
    const drawing = document.createElement('canvas');
    drawColors(drawing, colors);
    node.style.width = `${Math.min(Math.max(vector.length * 3, 96), 256)}px`;
    node.append(drawing);
    node.addEventListener('pointermove', (event) => {
        const box = node.getBoundingClientRect();
        const at = Math.floor((event.clientX - box.left) / box.width * vector.length);
        if (at >= 0 && at < vector.length) tell(at);
    });
    return node;
}

/// Three significant digits, and a minus as wide as a digit.
function briefSigned(value) {
    if (value === 0) return '0';
    const size = Math.abs(value);
    const text = size >= 0.001 && size < 1e5 ? String(Number(size.toPrecision(3))) : size.toExponential(1);
    return value < 0 ? `−${text}` : text;
}

// ---- The text of the section

const walkCell = (className, ...content) => made('td', className, ...content);

function numberCell(array, row, column) {
    const value = array.row(row)[column];
    const isMasked = array.isMasked(row, column);
    const cell = walkCell('number', isMasked ? 'masked' : Number.isFinite(value) ? briefSigned(value) : 'no number');
    if (!isMasked && Number.isFinite(value)) cell.title = shortest(value, array.of);
    return cell;
}

const isStepMasked = (column) => {
    const {row} = chosen;
    if (walk.mask) return walk.mask.row(row)[column] === 0;
    return walk.weights.isMasked(row, column) || walk.steps.some(({array}) => array.isMasked(row, column));
};

/// A step that changed no shown key's number is left out.
function hasChanged(step, open) {
    const {row} = chosen, numbers = step.array.row(row);
    if (step.from === undefined) return true;
    const from = walk.steps.find(({name}) => name === step.from)?.array
        ?? (step.from === 'attention_weights' ? walk.weights : null);
    return open.some((column) => numbers[column] !== (from ? from.row(row)[column] : step.from));
}

/// `times 1/√8 ≈ 0.354`, derived from the shown keys' numbers.
function scaleText(open) {
    const [scores, scaled] = ['scores', 'scaled_scores'].map(
        (name) => walk.steps.find((step) => step.name === name)?.array.row(chosen.row));
    const largest = scores && open.reduce(
        (most, column) => Math.abs(scores[column]) > Math.abs(scores[most]) ? column : most, open[0]);
    const scale = largest === undefined ? NaN : scaled[largest] / scores[largest];
    if (!Number.isFinite(scale)) return 'times the scale';
    const width = walk.keys?.width, error = walk.steps[0].array.of.digits ? 0.02 : 1e-5;
    const isRoot = width > 1 && Math.abs(scale * Math.sqrt(width) - 1) < error;
    return `times ${isRoot ? `1/√${width} ≈ ` : '≈ '}${briefSigned(scale)}`;
}

/// The row of a key: its vector, the products, the steps on their sum, weight and value.
function keyRow(column, steps, fulls) {
    const {row} = chosen, place = placeOf(map.columns, column), {queries, keys, values, weights} = walk;
    const button = made('button', '', tokenOf(map.columns, column),
                        made('span', 'index', map.columns.tokens ? ` ${place}` : ''));
    button.ariaLabel = button.title = spokenName(map.columns, column);
    const line = made('tr', '', made('th', '', button));
    line.dataset.column = column;
    if (keys) line.append(walkCell('', strip(keys.row(column), fulls.keys, `${keys.name}[${place}]`, keys.of)));
    if (queries && keys) {
        const query = queries.row(row);
        const products = Array.from(keys.row(column), (value, i) => value * query[i]);
        line.append(walkCell('', strip(products, fulls.products, `queries[${placeOf(map.rows, row)}] × ${keys.name}[${place}]`)));
    }
    for (const {array} of steps) line.append(numberCell(array, row, column));
    const weight = numberCell(weights, row, column), bar = made('span', 'bar');
    bar.style.width = `${100 * Math.min(1, weights.row(row)[column] / fulls.weights || 0)}%`;
    weight.prepend(made('span', 'track', bar));
    weight.classList.add('weight');
    line.append(weight);
    if (values) line.append(walkCell('', strip(values.row(column), fulls.values, `${values.name}[${place}]`, values.of)));
    return line;
}

/// `scores[5][0] = 0.12·0.3 + …`: the largest products if there are many.
function sumOf(column) {
    const {row} = chosen, query = walk.queries.row(row), key = walk.keys.row(column);
    const scores = walk.steps.find(({name}) => name === 'scores').array;
    const terms = Array.from(query, (value, i) => i);
    if (terms.length > mostTerms) terms.sort((a, b) => Math.abs(query[b] * key[b]) - Math.abs(query[a] * key[a]));
    const bracketed = (value) => value < 0 ? `(${briefSigned(value)})` : briefSigned(value);
    const texts = terms.slice(0, mostTerms).map((i) => `${bracketed(query[i])}·${bracketed(key[i])}`);
    const rest = terms.length > mostTerms ? ` + ${terms.length - mostTerms} smaller products` : '';
    // A page has no scores of masked keys.
    const isMasked = scores.isMasked(row, column);
    const score = isMasked ? briefSigned(query.reduce((sum, value, i) => sum + value * key[i], 0))
                            : shortest(scores.row(row)[column], scores.of).replaceAll('-', '−');
    return `scores[${placeOf(map.rows, row)}][${placeOf(map.columns, column)}] = ${texts.join(' + ')}${rest} ≈ ${score}`
        + (isMasked ? '. Masked: weight 0' : '');
}

/// `e^(0.1 − 1.2) / 2.05 ≈ 0.16`: the computation of the weight, if only the shown keys took part
/// in the softmax.
function softmaxOf(column, open) {
    const {row} = chosen, steps = walk.steps.filter(({name}) => /_?scores$/.test(name));
    const scores = steps.at(-1)?.array.row(row);
    const weights = (walk.steps.find(({name}) => name === 'weights_before_dropout')?.array ?? walk.weights).row(row);
    if (!steps.some(({name}) => name === 'scaled_scores') || !open.includes(column)) return '';
    const most = open.reduce((largest, key) => Math.max(largest, scores[key]), -Infinity);
    const total = open.reduce((sum, key) => sum + Math.exp(scores[key] - most), 0);
    const share = Math.exp(scores[column] - most) / total;
    if (!(Math.abs(share - weights[column]) <= 0.001 * share + 1e-6)) return '';
    if (open.length === 1) return '. It is the only open key: its weight is 1';
    return `. Its weight: e^(${briefSigned(scores[column])} − ${briefSigned(most).replace(/^(−.*)$/, '($1)')}) / ${briefSigned(total)}`
        + ` ≈ ${briefSigned(weights[column])}, where ${briefSigned(most)} is the largest of the row`
        + ` and ${briefSigned(total)} the sum of such powers over all ${open.length} open keys`;
}

const percentOf = (share) => `${Number((100 * share).toPrecision(3))} %`;

function drawWalk() {
    const {row} = chosen, {queries, keys, values, weights, out} = walk;
    const columns = Array.from({length: map.columns.size}, (_, column) => column);
    const open = columns.filter((column) => !isStepMasked(column)), row_ = weights.row(row);
    const order = open.sort((a, b) => Math.abs(row_[b]) - Math.abs(row_[a]) || a - b);
    walk.open = order;
    const listed = order.slice(0, walkShown), masked = columns.length - order.length;
    if (chosen.by === 'column' && order.indexOf(chosen.column) >= walkShown) listed.push(chosen.column);
    const steps = walk.steps.filter((step) => hasChanged(step, order));
    const query = queries?.row(row), fulls = {
        keys: largestOf([...(query ? [query] : []), ...listed.map((column) => keys?.row(column) ?? [])]),
        values: largestOf(listed.map((column) => values?.row(column) ?? [])),
        weights: largestOf([order.map((column) => row_[column])]),
        products: query && keys ? largestOf(listed.map((column) => Array.from(keys.row(column), (value, i) => value * query[i]))) : 0,
    };
    const place = placeOf(map.rows, row);
    const head = nameOfShown();
    element('walk-title').replaceChildren('Walk: ', ...nameOf(map.rows, row), head ? `, ${head}` : '');
    element('walk-hint').replaceChildren(...(chosen.by === 'row' ? [] : [
        'A walk is of one query, here of ', ...nameOf(map.rows, row), ', which attends to ',
        ...nameOf(map.columns, chosen.column), ` with ${briefSigned(row_[chosen.column])}. `]), walk.hint);
    element('walk-steps').hidden = false;
    element('walk-query').replaceChildren(...(query ? [
        `queries[${place}] is what it asks for. It is multiplied with each key, number by number, and the products are added: that is the score.`,
        strip(query, fulls.keys, `queries[${place}]`, queries.of)] : []));
    const titles = ['key', ...(keys ? [keys.name] : []), ...(queries && keys ? ['products'] : []),
                    ...steps.map(({name}) => name), 'attention_weights', ...(values ? [values.name] : [])];
    const heads = titles.map((title) => {
        const cell = made('th', '', title.replaceAll('_', ' '));
        const tells = walkSteps.find(({name}) => name === title)?.tells;
        if (tells) cell.append(made('small', '', typeof tells === 'string' ? tells : tells(order)));
        return cell;
    });
    element('walk-head').replaceChildren(...heads);
    element('walk-keys').replaceChildren(...listed.map((column) => keyRow(column, steps, fulls)));
    const sum = (some) => some.reduce((total, column) => total + (Math.abs(row_[column]) || 0), 0);
    const whole = sum(order), shownShare = whole > 0 ? sum(listed) / whole : 1;
    const cut = order.length - listed.length;
    element('walk-rest').textContent = [
        cut > 0 ? `${cut} more keys share the other ${percentOf(1 - shownShare)} of the weight.` : '',
        masked > 0 ? `${masked} masked key${masked === 1 ? '' : 's'}: weight 0.` : '',
    ].filter(Boolean).join(' ');
    element('walk-more').hidden = cut === 0;
    element('walk-more').textContent = `${Math.min(cut, moreKeys)} more keys`;
    element('walk-out').replaceChildren(...(values && out ? [
        `The softmax makes weights of the scores. ${out.name}[${place}] is the sum of the values, each times its weight.`,
        strip(out.row(row), largestOf([out.row(row)]), `${out.name}[${place}]`, out.of)] : []));
    const isOnRow = isPointing && cursor.row === row;
    const isTold = isOnRow || chosen.by === 'column';
    // The second key is a better example than the first, whose exponential is e^0.
    markWalk(isTold && listed.includes(cursor.column) ? cursor.column : listed[1] ?? listed[0]);
}

/// The key whose sum is written, here and among the lines.
function markWalk(column) {
    if (!walk) return;
    for (const line of element('walk-keys').children)
        line.classList.toggle('marked', Number(line.dataset.column) === column);
    const canTell = walk.queries && walk.keys && walk.steps.some(({name}) => name === 'scores');
    element('walk-sum').textContent = canTell && column !== undefined ? sumOf(column) + softmaxOf(column, walk.open) : '';
    for (const button of element('key-tokens').querySelectorAll('.of-walk')) button.classList.remove('of-walk');
    if (column !== undefined) buttonOf('column', column)?.classList.add('of-walk');
}

const columnOfWalk = (event) => {
    const column = event.target.closest('tr')?.dataset.column;
    return column === undefined ? null : Number(column);
};

function pointFromWalk(event) {
    const column = columnOfWalk(event);
    if (column === null) return;
    if (cursor.row !== chosen.row || cursor.column !== column || !isPointing) moveTo(chosen.row, column);
    markWalk(column);
}

onChange((before) => {
    const differs = ['array', 'panel', 'isMean', 'view'].some((name) => before[name] !== chosen[name]);
    if (differs || !walk) showWalk();
    else if (chosen.row === null) return;  // until its numbers are read
    else if (before.row !== chosen.row || before.by !== chosen.by || chosen.by === 'column') drawWalk();
    else if (before.column !== chosen.column) markWalk(chosen.column);
});
element('walk-keys').addEventListener('pointerover', pointFromWalk);
element('walk-keys').addEventListener('focusin', pointFromWalk);
element('walk-keys').addEventListener('click', (event) => {
    const column = columnOfWalk(event);
    if (column === null) return;
    choose({by: 'row', column});
    scrollToCell(chosen.row, column);
});
element('walk-more').addEventListener('click', () => {
    walkShown += moreKeys;
    drawWalk();
});
// On the map's parent, after its own listeners have moved the cursor.
for (const kind of ['pointermove', 'keydown'])
    element('chart').addEventListener(kind, () => {
        if (isPointing && cursor.row === chosen.row) markWalk(cursor.column);
    });
