/**
 * Bundles src/page/browser into files that the page's server gives out as they are: index.html, script, style and icon,
 * named for their contents, what brotli and gzip make of them, and the licences of what is in them.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { type Plugin, rolldown } from 'rolldown';

const root = join(import.meta.dirname, '..');
const source = join(root, 'src', 'page', 'browser');
const modules = `${join(root, 'node_modules')}/`;

/** What the documentation says of a word. */
export interface ReasonText {
  readonly meaning: string;
  readonly whatToDo: string;
}

/** The rows of all tables of two or three columns whose first one has words in CamelCase. The first row of a word counts. */
export function reasonTexts(markdown: string): Readonly<Record<string, ReasonText>> {
  const texts: Record<string, ReasonText> = {};
  for (const line of markdown.split('\n')) {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    const [before, reasons = '', meaning = '', ...rest] = cells;
    if (before !== '' || rest.pop() !== '') continue;
    const [whatToDo = ''] = rest;
    for (const [, word = ''] of reasons.matchAll(/`([A-Z]\w+)`/g)) {
      texts[word] ??= { meaning: proseOf(meaning), whatToDo: proseOf(whatToDo) };
    }
  }
  return texts;
}

/** Text without the targets of links and the backslashes of Markdown; code keeps its backticks. */
function proseOf(markdown: string): string {
  return markdown.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/\\([|*_])/g, '$1');
}

const reasons: Plugin = {
  name: 'reasons',
  resolveId: { filter: { id: /^servicenet:reasons$/ }, handler: (id) => id },
  load: {
    filter: { id: /^servicenet:reasons$/ },
    handler: () => {
      const texts = reasonTexts(readFileSync(join(root, 'docs', 'troubleshooting.md'), 'utf8'));
      return { code: `export default ${JSON.stringify(texts)};`, moduleType: 'js' };
    },
  },
};

/** The script, and the packages of node_modules that are in it. */
async function bundle(): Promise<{ readonly code: string; readonly packages: readonly string[] }> {
  const built = await rolldown({
    input: join(source, 'main.tsx'),
    platform: 'browser',
    tsconfig: false,
    transform: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    plugins: [reasons],
    // A warning is a mistake here, as in hack/bundle.ts; so is a module of Node.js.
    onLog: (level, log) => {
      if (level !== 'debug' && level !== 'info') throw new Error(log.message);
    },
  });
  const { output } = await built.generate({ format: 'esm', minify: true, comments: false });
  await built.close();
  const [chunk] = output;
  const packages = chunk.moduleIds
    .filter((id) => id.startsWith(modules))
    .map((id) => /^(?:@[^/]+\/)?[^/]+/.exec(id.slice(modules.length))?.[0] ?? '');
  return { code: chunk.code, packages: [...new Set(packages)].toSorted() };
}

/** The style sheets by their names, without comments and indentation. */
function style(): string {
  const folder = join(source, 'style');
  const sheets = readdirSync(folder)
    .toSorted()
    .map((name) => readFileSync(join(folder, name), 'utf8'));
  return sheets
    .join('\n')
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/\n\s*/g, '\n')
    .trim();
}

function licences(packages: readonly string[]): string {
  const texts = packages.map((name) => {
    const license = readFileSync(join(modules, name, 'LICENSE'), 'utf8').trim();
    const manifest: unknown = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'));
    const version: unknown = Reflect.get(Object(manifest), 'version');
    return `${name} ${String(version)}\n\n${license}\n`;
  });
  return `The script of the page contains:\n\n${texts.join('\n\n')}`;
}

/** Shorter texts are not worth compressing. */
const smallest = 2000;

/**
 * Builds the page. What the folder held is removed first.
 *
 * @param outputFolder for index.html and the files that it names, and LICENSES.txt: small ones as they are, others as `.br`
 *   and `.gz` alone.
 */
export async function buildPage(outputFolder: string): Promise<void> {
  const { code, packages } = await bundle();
  const named = (name: string, type: string, text: string): readonly [string, string] => {
    const hash = createHash('sha256').update(text).digest('base64url').slice(0, 10);
    return [`${name}-${hash}.${type}`, text];
  };
  const script = named('script', 'js', code);
  const sheet = named('style', 'css', style());
  const icon = named('icon', 'svg', readFileSync(join(source, 'icon.svg'), 'utf8'));
  const index = readFileSync(join(source, 'index.html'), 'utf8')
    .replace('{script}', script[0])
    .replace('{style}', sheet[0])
    .replace('{icon}', icon[0]);
  rmSync(outputFolder, { recursive: true, force: true });
  mkdirSync(outputFolder, { recursive: true });
  for (const [name, text] of [
    ['index.html', index],
    script,
    sheet,
    icon,
    ['LICENSES.txt', licences(packages)],
  ] as const) {
    if (text.length < smallest) {
      writeFileSync(join(outputFolder, name), text);
      continue;
    }
    writeFileSync(join(outputFolder, `${name}.br`), brotliCompressSync(text));
    writeFileSync(join(outputFolder, `${name}.gz`), gzipSync(text, { level: 9 }));
  }
}

if (import.meta.main) await buildPage(join(root, 'dist', 'page', 'static'));
