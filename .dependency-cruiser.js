/**
 * A file that only one other imports, tests included, is a piece of that one, unless it is a seam. These are seams by
 * their name: pure plans, controllers and kinds, entries, commands (loaded late), families of equals.
 */
const seamsByName = [
  'apiserver/http/http2',
  '(^|/)(plan[^/]*|controller|strategy|main|worker|process|network-process|built-in-programs)\\.[jt]s$',
  '\\.generated\\.',
  '^src/registry/[^/]+/[^/]+\\.ts$',
  '^src/(commands|controllers)/[^/]+\\.ts$',
  '^src/apiserver/(tables|bootstrap|admission|subresources)/',
  '^src/cel/(library|syntax|cost)/',
  '^src/guests/',
];

/** And these: one of two halves or directions, what is loaded late, or a thing that a reader asks for by its name. */
const seams = [
  'apiserver/aggregation/remote-discovery',
  'apiserver/authorization/role-aggregation',
  'apiserver/custom-resources/definitions',
  'apiserver/custom-resources/delete-custom-objects',
  'apiserver/custom-resources/serve',
  'apiserver/discovery/openapi/gnostic-fields',
  'apiserver/handler-chain',
  'apiserver/http/shutdown',
  'apiserver/rest/watch/watch',
  'apiserver/schema/yaml/yaml-problem',
  'apiserver/storage/disk/data-directory',
  'cel/check-macros',
  'cel/evaluate',
  'cel/evaluate-macros',
  'client/credentials/login',
  'client/informers/reflector-retries',
  'commands/trace/cluster',
  'commands/trace/trace',
  'controllers/announcement-status/reconciler',
  'controllers/garbage-collection/monitors',
  'controllers/kubelet/ask-grpc',
  'controllers/kubelet/pod-containers',
  'controllers/load-balancer/address-choice',
  'controllers/load-balancer/pool-controller',
  'dns/responder',
  'emulation/client-pods',
  'emulation/containers/host-paths',
  'emulation/containers/nested-mounts',
  'emulation/containers/sandbox-runtime',
  'emulation/kubelet-api/kubelet-api',
  'network/announcing/agent-leaving',
  'network/bgp/decode',
  'network/forwarding/service-plan',
  'network/path/destination',
  'node/announce/layer2/arping',
  'node/announce/layer2/conflicts',
  'node/announce/lease-io',
  'node/announce/view',
  'node/egress/egress-routes',
  'node/policy/egress-firewalls',
  'node/userspace/listeners',
  'platforms/openshift/egress-qos',
  'registry/admissionregistration/policy/type-check',
  'registry/apiextensions/customresourcedefinition/rule-expressions',
  'registry/apiextensions/customresourcedefinition/schema-openapi',
  'registry/core/pod/subresources',
  'registry/core/service/allocation',
  'registry/core/service/traffic-rules',
  'registry/core/service/validation',
  'router/asked',
  'router/listeners',
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
        pathNot: [...seamsByName, ...seams.map((file) => `^src/${file}\\.ts$`)],
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
