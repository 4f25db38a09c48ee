/**
 * A file that only one other imports, tests included, is a piece of that one, unless it is a seam. These are seams by
 * their name: pure plans, controllers and kinds, entries, commands (loaded late), families of equals.
 */
const seamsByName = [
  'apiserver/http/http2',
  '(^|/)(plan[^/]*|controller|strategy|main|worker|process|network-process|built-in-programs)\\.[jt]sx?$',
  '\\.generated\\.',
  '^src/registry/[^/]+/[^/]+\\.ts$',
  '^src/(commands|controllers)/[^/]+\\.ts$',
  '^src/apiserver/(tables|bootstrap|admission|subresources)/',
  '^src/cel/(library|syntax|cost)/',
  '^src/guests/',
  '^src/page/browser/(frame|views)/',
];

/** And these: one of two halves or directions, what is loaded late, or a thing that a reader asks for by its name. */
const seams = [
  'apiserver/custom-resources/definitions',
  'apiserver/custom-resources/serve',
  'apiserver/handler-chain',
  'apiserver/http/shutdown',
  'apiserver/http/thread-requests',
  'apiserver/rest/watch/watch-lines',
  'apiserver/schema/yaml/yaml-problem',
  'apiserver/storage/disk/recovery',
  'cel/evaluate',
  'client/credentials/login',
  'client/informers/reflector-retries',
  'commands/top/answer',
  'controllers/announcement-status/reconciler',
  'controllers/garbage-collection/monitors',
  'controllers/kubelet/probes/ask-grpc',
  'controllers/kubelet/pod-containers',
  'controllers/kubelet/pod-resizes',
  'controllers/load-balancer/address-choice',
  'controllers/load-balancer/pool-controller',
  'controllers/service-allocation/allocation-reconciler',
  'emulation/client-pods',
  'emulation/containers/sandbox-runtime',
  'network/forwarding/service-plan',
  'network/path/reach-classes',
  'node/announce/lease-io',
  'node/announce/view',
  'node/policy/egress-firewalls',
  'page/answers',
  'page/browser/parts/reasons.d',
  'registry/admissionregistration/policy/type-check',
  'registry/apiextensions/customresourcedefinition/rule-expressions',
  'registry/apiextensions/customresourcedefinition/schema-openapi',
  'registry/core/pod/subresources',
  'registry/core/service/allocation',
  'registry/core/service/traffic-rules',
  'registry/core/service/validation',
  'router/http/http2',
];

/** Circles of imports, between files and between folders, are errors. Who may import whom is in eslint.config.js. */
export default {
  forbidden: [
    { name: 'no-circles-of-files', severity: 'error', from: { path: '^src/' }, to: { circular: true } },
    {
      name: 'no-circles-of-folders',
      severity: 'error',
      scope: 'folder',
      from: { path: '^src/' },
      to: { circular: true },
    },
    {
      name: 'second-user-or-seam',
      comment: 'a piece with one user belongs into the file of its user (CONTRIBUTING.md)',
      severity: 'error',
      module: {
        path: '^src/',
        pathNot: [...seamsByName, ...seams.map((file) => `^src/${file}\\.tsx?$`)],
        numberOfDependentsLessThan: 2,
      },
      from: { path: '^(src|test)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // Imports of types count too.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
};
