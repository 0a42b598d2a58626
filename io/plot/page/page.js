
// ---- A row as bars

function bar(index, full, hasBelow) {
    const part = numbersOf(panel), column = index % map.columns.size;
    const make = (name, className, text) => {
        const made = document.createElement(name);
        made.className = className;
        made.textContent = text;
        return made;
    };
    const item = document.createElement('li');
    const place = map.columns.first + column * map.columns.step;
    item.append(map.columns.tokens ? make('bdi', 'token', visible(map.columns.labels[column]))
                                   : make('span', 'token', `${map.columns.axis} ${place}`),
                make('span', 'index', map.columns.tokens ? place : ''));
    const track = make('span', 'track', '');
    const value = part.numbers[index];
    const isShown = !part.flags[index] && Number.isFinite(value);
    if (isShown && full > 0) {
        const length = Math.abs(value) / full * (hasBelow ? 50 : 100);
        const drawn = make('span', !map.diverging ? 'bar' : value < 0 ? 'bar below' : 'bar above', '');
        drawn.style.width = `${length}%`;
        drawn.style.left = !hasBelow ? '0' : `${value < 0 ? 50 - length : 50}%`;
        track.append(drawn);
    }
    item.append(track, make('span', isShown ? 'number' : 'number blocked', numberText(index)));
    return item;
}

function showBars(row) {
    barRow = row;
    element('bars-hint').hidden = row !== null;
    element('order').hidden = row === null;
    if (row === null) {
        element('bars-title').textContent = 'Row as bars';
        element('bar-list').replaceChildren();
        return;
    }
    element('bars-title').replaceChildren(...nameOf(map.rows, row));
    const part = numbersOf(panel), begin = row * map.columns.size;
    const order = Array.from({length: map.columns.size}, (_, column) => begin + column);
    const isNumber = (i) => !part.flags[i] && Number.isFinite(part.numbers[i]);
    const numbers = order.filter(isNumber).map((i) => part.numbers[i]);
    const full = numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    if (element('largest-first').checked) {
        const rank = (i) => isNumber(i) ? part.numbers[i] : -Infinity;
        order.sort((a, b) => rank(b) - rank(a) || a - b);
    }
    const hasBelow = numbers.some((value) => value < 0);
    element('bar-list').replaceChildren(...order.map((i) => bar(i, full, hasBelow)));
}

// ---- All matrices, small

const thumbnailSize = 160;
let thumbnailsOf = null;  // a new one ends the drawing of the last

function drawThumbnail(target, index, spare) {
    drawRaster(spare, index);
    target.width = target.height = thumbnailSize;
    const context = target.getContext('2d');
    if (numbersOf(index).hasBlocked) {
        context.fillStyle = hatching(context, 9);
        context.fillRect(0, 0, thumbnailSize, thumbnailSize);
    }
    context.imageSmoothingEnabled = Math.max(spare.width, spare.height) > thumbnailSize;
    context.imageSmoothingQuality = 'high';
    context.drawImage(spare, 0, 0, thumbnailSize, thumbnailSize);
}

/// One after the other, with pauses in which the page can answer.
function drawThumbnails() {
    const targets = element('thumbnails').querySelectorAll('canvas');
    const mine = thumbnailsOf = {}, spare = document.createElement('canvas');
    const drawFrom = (index) => {
        if (mine !== thumbnailsOf || index >= targets.length) return;
        drawThumbnail(targets[index], index, spare);
        setTimeout(drawFrom, 0, index + 1);
    };
    setTimeout(drawFrom, 50, 0);
}

function makeThumbnails() {
    element('overview').hidden = map.panels.length < 2;
    if (map.panels.length < 2) {
        element('thumbnails').replaceChildren();
        return;
    }
    element('thumbnails').replaceChildren(...map.panels.map((part, index) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.append(document.createElement('canvas'), part.title);
        button.addEventListener('click', () => choosePanel(index));
        return button;
    }));
    drawThumbnails();
}

// ---- What is shown

const axisNames = ['batch', 'head'];

function showLegend(lacksNumber) {
    const [low, high] = map.ends[scale];
    element('low').textContent = low;
    element('high').textContent = high;
    const context = element('scale-colors').getContext('2d');
    const image = context.createImageData(160, 1);
    for (let i = 0; i < 160; ++i) {
        image.data.set(colorAt(map.diverging ? 2 * i / 159 - 1 : i / 159), 4 * i);
        image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    element('blocked-key').hidden = !map.panels.some((part) => part.blocked || part.hasBlocked);
    element('no-number-key').hidden = !lacksNumber;
}

function showPanel() {
    showLegend(drawRaster(raster, panel));
    let rest = panel;
    for (const axis of [...map.axes].reverse()) {
        element(axis.name).value = rest % axis.size;
        rest = Math.floor(rest / axis.size);
    }
    element('previous').disabled = panel === 0;
    element('next').disabled = panel === map.panels.length - 1;
    view.setAttribute('aria-label', `${map.array} ${map.panels[panel].title}`.trim());
    for (const [index, button] of element('thumbnails').querySelectorAll('button').entries())
        button.setAttribute('aria-pressed', String(index === panel));
    say();
    if (barRow !== null) showBars(barRow);
    draw();
}

function choosePanel(index) {
    if (index < 0 || index >= map.panels.length) return;
    panel = index;
    showPanel();
}

/// The matrix that the lists of batch entries and heads name together.
function chosenPanel() {
    return map.axes.reduce((at, axis) => at * axis.size + Number(element(axis.name).value), 0);
}

function chooseArray(index) {
    map = mapAt(index);
    map.array = contents.arrays[index];
    map.widestRow ??= widestOf(map.rows);
    map.widestColumn ??= widestOf(map.columns);
    panel = Math.min(panel, map.panels.length - 1);
    zoom = 0;
    document.title = element('title').textContent = map.title;
    element('note').textContent = map.note;
    element('note').hidden = map.note === '';
    element('panels').hidden = map.panels.length < 2;
    for (const name of axisNames) {
        const size = map.axes.find((axis) => axis.name === name)?.size ?? 1;
        element(name).parentElement.hidden = size < 2;
        element(name).replaceChildren(...Array.from({length: size}, (_, i) => new Option(i, i)));
    }
    cursor = {row: Math.min(cursor.row, map.rows.size - 1),
              column: Math.min(cursor.column, map.columns.size - 1)};
    showBars(null);
    makeThumbnails();
    showPanel();
    layOut();
}

function chooseZoom(next) {
    if (next < 0 || (next > zoom && element('larger').disabled)) return;
    zoom = next;
    layOut();
    if (isPointing) scrollToCursor();
}

// ---- Keys and pointer

function press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const {row, column} = cursor, far = event.shiftKey ? 10 : 1;
    const moves = {
        ArrowUp: [row - far, column], ArrowDown: [row + far, column],
        ArrowLeft: [row, column - far], ArrowRight: [row, column + far],
        Home: [row, 0], End: [row, map.columns.size - 1],
    };
    const acts = {
        Enter: () => showBars(row), PageUp: () => choosePanel(panel - 1),
        PageDown: () => choosePanel(panel + 1), '+': () => chooseZoom(zoom + 1),
        '=': () => chooseZoom(zoom + 1), '-': () => chooseZoom(zoom - 1),
    };
    if (Object.hasOwn(moves, event.key)) {
        moveTo(...moves[event.key]);
        scrollToCursor();
    } else if (Object.hasOwn(acts, event.key)) {
        acts[event.key]();
    } else {
        return;
    }
    event.preventDefault();
}

function listen() {
    element('array').addEventListener('change', (event) => chooseArray(Number(event.target.value)));
    for (const name of axisNames)
        element(name).addEventListener('change', () => choosePanel(chosenPanel()));
    element('previous').addEventListener('click', () => choosePanel(panel - 1));
    element('next').addEventListener('click', () => choosePanel(panel + 1));
    element('scale').addEventListener('change', (event) => {
        scale = event.target.value;
        drawThumbnails();
        showPanel();
    });
    element('larger').addEventListener('click', () => chooseZoom(zoom + 1));
    element('smaller').addEventListener('click', () => chooseZoom(zoom - 1));
    element('largest-first').addEventListener('change', () => showBars(barRow));
    view.addEventListener('keydown', press);
    view.addEventListener('focus', () => moveTo(cursor.row, cursor.column));
    view.addEventListener('scroll', draw);
    view.addEventListener('pointermove', (event) => {
        const cell = cellAt(event);
        view.style.cursor = cell ? 'pointer' : '';
        if (cell && cell.column !== null) moveTo(cell.row, cell.column);
    });
    view.addEventListener('click', (event) => {
        const cell = cellAt(event);
        if (!cell) return;
        moveTo(cell.row, cell.column ?? cursor.column);
        showBars(cell.row);
    });
    new ResizeObserver(layOut).observe(element('chart'));
    addEventListener('resize', layOut);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
        drawThumbnails();
        draw();
    });
}

element('array').append(...contents.arrays.map((name, i) => new Option(name, i)));
element('array').parentElement.hidden = contents.arrays.length < 2;
element('scale').append(...contents.scales.map((name) => new Option(name, name, false, name === scale)));
document.documentElement.style.setProperty('--no-number', contents.no_number);
listen();
chooseArray(0);
