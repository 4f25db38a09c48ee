import tseslint from 'typescript-eslint';
import importX from 'eslint-plugin-import-x';
import { units } from './hack/lint/units.js';

/**
 * The table of ARCHITECTURE.md, "Rooms": what a room may import, which brings along what that one may import.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const imports = {
  objects: [],
  allocation: ['objects'],
  cel: ['objects'],
  registry: ['cel', 'allocation'],
  network: ['allocation'],
  telemetry: ['objects'],
  tls: ['objects'],
  apiserver: ['registry', 'telemetry', 'tls'],
  client: ['telemetry', 'tls'],
  runtime: ['client'],
  controllers: ['runtime', 'network'],
  platforms: ['controllers'],
  pools: ['platforms'],
  view: ['pools'],
  page: ['view', 'host'],
  host: ['objects', 'tls'],
  node: ['host', 'network', 'runtime'],
  router: ['host', 'network', 'runtime'],
  dns: ['host', 'network', 'runtime'],
  emulation: ['node', 'dns', 'router', 'platforms'],
  // And the interface of its programs, `emulation/program.ts`.
  guests: ['dns'],
  flags: ['allocation', 'telemetry'],
};
const rooms = [...Object.keys(imports), 'commands', 'testing'];

/**
 * @param {string} room
 * @returns {readonly string[]}
 */
const withImports = (room) => [room, ...(imports[room] ?? []).flatMap(withImports)];

const zones = [
  ...Object.keys(imports).map((room) => {
    const mayImport = new Set(withImports(room));
    const others = rooms.filter(
      (other) => !mayImport.has(other) && !(room === 'guests' && other === 'emulation'),
    );
    return {
      target: `./src/${room}`,
      from: others.map((other) => `./src/${other}`),
      message: `src/${room} may import only: ${[...mayImport].join(', ')} (ARCHITECTURE.md)`,
    };
  }),
  {
    target: './src/guests',
    from: './src/emulation',
    except: ['./program.ts'],
    message: 'src/guests may import only program.ts of src/emulation (ARCHITECTURE.md)',
  },
  {
    target: './src/page/browser',
    from: './src',
    except: ['./page/browser', './page/messages.ts', './view/pictures', './view/rows', './objects'],
    message:
      'code for browsers may import only view/pictures, view/rows, page/messages.ts and objects (ARCHITECTURE.md)',
  },
  {
    target: './src/view/pictures',
    from: './src',
    except: [
      './view/pictures',
      './objects',
      './network/path/report.ts',
      './network/path/stages.ts',
      './network/path/way.ts',
    ],
    message:
      'pictures are drawn in browsers too: they may import only objects, and types of a trace (ARCHITECTURE.md)',
  },
  {
    target: './src/testing',
    from: './src/guests',
    message: 'only src/commands may import src/guests (ARCHITECTURE.md)',
  },
];

/** Rooms that do no I/O and read neither clock nor randomness: both come in as arguments. */
const pure = [
  'src/allocation/**/*.ts',
  'src/cel/**/*.ts',
  'src/registry/**/*.ts',
  'src/network/**/*.ts',
  'src/objects/**/*.ts',
  'src/flags/**/*.ts',
  'src/controllers/**/plan*.ts',
  'src/pools/**/plan*.ts',
  'src/view/{rows,pictures}/**/*.ts',
];

/** Libraries that one file alone imports, so that what they do has one place. */
const importedOnce = [
  {
    name: 'commander',
    file: 'src/commands/program.ts',
    message: 'src/commands/program.ts alone imports it: a flag is a row of a table in src/flags',
  },
  {
    name: 'p-queue',
    file: 'src/runtime/key-loop.ts',
    message: 'src/runtime/key-loop.ts alone imports it: work that waits for its turn is a key of a KeyLoop',
  },
  {
    name: '@kubernetes/client-node',
    file: 'src/client/credentials/kubeconfig.ts',
    message:
      'src/client/credentials/kubeconfig.ts alone loads it, and only for a kubeconfig: it takes 82 MiB',
  },
];

/** What a file may not import of {@link importedOnce}. @param {string} [file] */
const onceElsewhere = (file) =>
  importedOnce.filter((library) => library.file !== file).map(({ name, message }) => ({ name, message }));

/** One style for private members, one for constants. */
const names = [
  {
    selector: ':matches(PropertyDefinition, MethodDefinition[kind!="constructor"])[accessibility="private"]',
    message: 'private members begin with #',
  },
  {
    selector:
      ':matches(Program, ExportNamedDeclaration) > VariableDeclaration > * > Identifier[name=/^[A-Z][A-Z0-9_]*$/]',
    message: 'constants are in camelCase',
  },
];

/** What no source does. */
const ofSources = [
  {
    selector: 'CallExpression[callee.property.name=/^(push|unshift|splice|max|min)$/] > SpreadElement',
    message: 'throws a RangeError from about 120,000 items on: pushAll and maxOf of objects/lists.ts do not',
  },
  {
    selector: ':matches(ImportDeclaration[importKind="value"], ImportExpression)[source.value="node:http"]',
    message: 'loads the fetch of Node.js too, 13 MiB: src/host/node-http.ts does not',
  },
  {
    selector: 'ImportDeclaration[importKind="value"][source.value="@kubernetes/client-node"]',
    message: 'takes 82 MiB: it is loaded by import() where there is a kubeconfig',
  },
];

/** What else no source does, but the file that reads kubeconfigs. */
const noLateImport = {
  selector: 'ImportExpression[source.value=/^(commander|p-queue|@kubernetes.client-node)$/]',
  message: 'one file alone imports it',
};

export default tseslint.config(
  { ignores: ['dist/**', 'coverage/**', 'node_modules/**'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['.dependency-cruiser.js'] },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    plugins: { 'import-x': importX },
    settings: { 'import-x/resolver': { node: { extensions: ['.ts', '.js', '.json'] } } },
    rules: {
      'import-x/no-restricted-paths': ['error', { zones }],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // There are no enums (erasableSyntaxOnly).
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      eqeqeq: 'error',
    },
  },
  { files: ['**/*.{ts,tsx}'], rules: { 'no-restricted-syntax': ['error', ...names] } },
  {
    files: ['src/**/*.{ts,tsx}'],
    ignores: ['src/**/*.generated.ts'],
    plugins: { servicenet: { rules: { units } } },
    rules: {
      'servicenet/units': 'error',
      // A reader sees such a file as one thing. ARCHITECTURE.md names what is one and longer.
      'max-lines': ['error', 420],
    },
  },
  {
    files: ['src/network/announcing/agent.ts'],
    rules: { 'max-lines': ['error', 600] },
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    rules: { 'no-restricted-syntax': ['error', ...names, ...ofSources, noLateImport] },
  },
  {
    files: ['src/client/credentials/kubeconfig.ts'],
    rules: { 'no-restricted-syntax': ['error', ...names, ...ofSources] },
  },
  {
    files: ['src/{controllers,platforms}/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...names,
        ...ofSources,
        noLateImport,
        {
          selector: 'ClassDeclaration[superClass][superClass.name!=/Error$/]',
          message: 'a controller is a specification (ControllerSpec): what several share is a function',
        },
      ],
    },
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    rules: { 'no-restricted-imports': ['error', { paths: onceElsewhere() }] },
  },
  {
    files: ['src/page/browser/**/*.{ts,tsx}'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          paths: onceElsewhere(),
          patterns: [{ regex: '^node:', message: 'code for browsers' }],
        },
      ],
      'no-restricted-globals': ['error', 'Buffer', 'process', 'global', 'setImmediate'],
    },
  },
  ...importedOnce.map(({ file }) =>
    tseslint.config({
      files: [file],
      rules: { 'no-restricted-imports': ['error', { paths: onceElsewhere(file) }] },
    }),
  ),
  {
    files: pure,
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'a pure room gets the time as an argument' },
        { object: 'Math', property: 'random', message: 'a pure room gets randomness as an argument' },
        { object: 'performance', property: 'now', message: 'a pure room gets the time as an argument' },
      ],
      'no-restricted-imports': [
        'error',
        {
          paths: onceElsewhere(),
          patterns: [{ regex: '^node:(?!net$|buffer$)', message: 'a pure room does no I/O' }],
        },
      ],
    },
  },
  {
    files: ['**/*.js'],
    ...tseslint.configs.disableTypeChecked,
  },
);
