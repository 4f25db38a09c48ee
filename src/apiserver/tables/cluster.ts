import type { KubeObject } from '../../objects/meta.ts';
import {
  timeSince,
  type TableConverter,
  ageColumn,
  ageOf,
  column,
  nameColumn,
  nameOf,
  wideColumn,
  namedTable,
} from './table.ts';
import {
  type JsonRecord,
  at,
  conditionStatus,
  listAt,
  numberAt,
  recordAt,
  textAt,
} from '../../objects/json.ts';

/**
 * - Tables of nodes, namespaces, configuration, access and admission.
 * - Tables of APIServices.
 * - Tables of admission policies and their bindings.
 * - Tables of flowcontrol.apiserver.k8s.io.
 */

const rolePrefix = 'node-role.kubernetes.io/';

export const nodesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Status', 'Whether the node is ready, and whether Pods may be placed on it.'),
    column('Roles', 'Its roles, from its labels.'),
    ageColumn,
    column('Version', 'Version of its kubelet.'),
    wideColumn('Internal-IP', 'Its address inside the cluster network.'),
    wideColumn('External-IP', 'Its address outside of the cluster.'),
    wideColumn('OS-Image', 'Its operating system.'),
    wideColumn('Kernel-Version', 'Version of its kernel.'),
    wideColumn('Container-Runtime', 'Its container runtime.'),
  ],
  cells(object, now) {
    const info = recordAt(object, 'status', 'nodeInfo');
    return [
      nameOf(object),
      nodeStatus(object),
      nodeRoles(object),
      ageOf(object, now),
      textAt(info, 'kubeletVersion'),
      nodeAddress(object, 'InternalIP'),
      nodeAddress(object, 'ExternalIP'),
      textAt(info, 'osImage') || '<unknown>',
      kernelOf(info),
      textAt(info, 'containerRuntimeVersion') || '<unknown>',
    ];
  },
};

/** The kernel and, since Kubernetes 1.35, its architecture. */
function kernelOf(info: JsonRecord): string {
  const architecture = textAt(info, 'architecture');
  const version = textAt(info, 'kernelVersion') || '<unknown>';
  return architecture === '' ? version : `${version} (${architecture})`;
}

function nodeStatus(node: KubeObject): string {
  const ready = conditionStatus(listAt(node, 'status', 'conditions'), 'Ready');
  const status = ready === undefined ? 'Unknown' : ready === 'True' ? 'Ready' : 'NotReady';
  return at(node, 'spec', 'unschedulable') === true ? `${status},SchedulingDisabled` : status;
}

function nodeRoles(node: KubeObject): string {
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(node.metadata.labels ?? {})) {
    if (key.startsWith(rolePrefix) && key.length > rolePrefix.length) roles.add(key.slice(rolePrefix.length));
    else if (key === 'kubernetes.io/role' && value !== '') roles.add(value);
  }
  return roles.size === 0 ? '<none>' : [...roles].sort().join(',');
}

function nodeAddress(node: KubeObject, type: string): string {
  const found = listAt(node, 'status', 'addresses').find((address) => textAt(address, 'type') === type);
  return textAt(found, 'address') || '<none>';
}

export const namespacesTable = namedTable(
  [column('Status', 'Active, or Terminating while its objects are deleted.')],
  (object) => [textAt(object, 'status', 'phase')],
);

export const eventsTable: TableConverter = {
  columns: [
    column('Last Seen', 'The time since it happened last.'),
    column('Type', 'Normal or Warning.'),
    column('Reason', 'The reason, in one word.'),
    column('Object', 'The object concerned.'),
    wideColumn('Subobject', 'The part of the object concerned.'),
    wideColumn('Source', 'The component that reported it.'),
    column('Message', 'What happened.'),
    wideColumn('First Seen', 'The time since it happened first.'),
    wideColumn('Count', 'The number of times that it happened.'),
    { ...nameColumn, priority: 1 },
  ],
  cells(object, now) {
    // core/v1 and events.k8s.io/v1 have different names for the same fields.
    const regarding = at(object, 'involvedObject') ?? at(object, 'regarding');
    const source = at(object, 'source') ?? at(object, 'deprecatedSource');
    const first =
      at(object, 'firstTimestamp') ?? at(object, 'deprecatedFirstTimestamp') ?? at(object, 'eventTime');
    const last = at(object, 'lastTimestamp') ?? at(object, 'deprecatedLastTimestamp') ?? first;
    const series = at(object, 'series') ?? undefined;
    const count = numberAt(object, 'count') || numberAt(object, 'deprecatedCount');
    const name = textAt(regarding, 'name');
    const kind = textAt(regarding, 'kind').toLowerCase();
    const component = textAt(source, 'component') || reportingController(object);
    const instance = textAt(source, 'host') || textAt(object, 'reportingInstance');
    return [
      timeSince(series === undefined ? last : at(series, 'lastObservedTime'), now),
      textAt(object, 'type'),
      textAt(object, 'reason'),
      name === '' ? kind : `${kind}/${name}`,
      textAt(regarding, 'fieldPath'),
      instance === '' ? component : `${component}, ${instance}`,
      (textAt(object, 'message') || textAt(object, 'note')).trim(),
      timeSince(first, now),
      series === undefined ? count || 1 : numberAt(series, 'count'),
      nameOf(object),
    ];
  },
};

/** `reportingComponent` in core/v1. */
function reportingController(event: KubeObject): string {
  return textAt(event, 'reportingComponent') || textAt(event, 'reportingController');
}

const dataColumn = column('Data', 'The number of entries.');

export const configMapsTable = namedTable([dataColumn], (object) => {
  const entries = Object.keys(recordAt(object, 'data')).length;
  return [entries + Object.keys(recordAt(object, 'binaryData')).length];
});

export const secretsTable = namedTable([column('Type', 'The type of the secret.'), dataColumn], (object) => [
  textAt(object, 'type'),
  Object.keys(recordAt(object, 'data')).length,
]);

/** Without the number of secrets, as in kube-apiserver. */
export const serviceAccountsTable = namedTable([], () => []);

export const leasesTable = namedTable([column('Holder', 'The identity of the holder.')], (object) => [
  textAt(object, 'spec', 'holderIdentity'),
]);

/** RoleBindings and ClusterRoleBindings. */
export const roleBindingsTable = namedTable(
  [
    column('Role', 'The role that is granted.'),
    wideColumn('Users', 'Users that get it.'),
    wideColumn('Groups', 'Groups that get it.'),
    wideColumn('ServiceAccounts', 'Service accounts that get it.'),
  ],
  (object) => {
    const subjects = listAt(object, 'subjects');
    const ofKind = (kind: string): string =>
      subjects
        .filter((subject) => textAt(subject, 'kind') === kind)
        .map((subject) => {
          const name = textAt(subject, 'name');
          return kind === 'ServiceAccount' ? `${textAt(subject, 'namespace')}/${name}` : name;
        })
        .join(', ');
    return [
      `${textAt(object, 'roleRef', 'kind')}/${textAt(object, 'roleRef', 'name')}`,
      ofKind('User'),
      ofKind('Group'),
      ofKind('ServiceAccount'),
    ];
  },
);

/** Both kinds of webhook configuration. */
export const webhookConfigurationsTable = namedTable(
  [column('Webhooks', 'The number of webhooks.', { type: 'integer' })],
  (object) => [listAt(object, 'webhooks').length],
);

/** The table of kinds without a converter (apiserver `registry/rest/table.go`), with a date instead of an age. */
export const otherKindsTable: TableConverter = {
  columns: [nameColumn, column('Created At', 'When the object was created.', { type: 'date' })],
  cells: (object) => [nameOf(object), object.metadata.creationTimestamp ?? ''],
};

export const apiServicesTable = namedTable(
  [
    column('Service', 'The Service that answers, Local for this server.'),
    column('Available', 'Whether the group version is served.'),
  ],
  (object) => {
    const service = at(object, 'spec', 'service');
    const available = listAt(object, 'status', 'conditions').find(
      (condition) => textAt(condition, 'type') === 'Available',
    );
    const status = textAt(available, 'status');
    return [
      service === undefined ? 'Local' : `${textAt(service, 'namespace')}/${textAt(service, 'name')}`,
      available === undefined
        ? 'Unknown'
        : status === 'True'
          ? status
          : `${status} (${textAt(available, 'reason')})`,
    ];
  },
);

const unset = '<unset>';
const paramKindColumn = column('ParamKind', 'The kind of its parameters.');

export const validatingAdmissionPoliciesTable = namedTable(
  [column('Validations', 'The number of validations.', { type: 'integer' }), paramKindColumn],
  (object) => [listAt(object, 'spec', 'validations').length, paramKind(object)],
);

export const mutatingAdmissionPoliciesTable = namedTable(
  [column('Mutations', 'The number of mutations.', { type: 'integer' }), paramKindColumn],
  (object) => [listAt(object, 'spec', 'mutations').length, paramKind(object)],
);

function paramKind(policy: unknown): string {
  const kind = at(policy, 'spec', 'paramKind');
  return kind === undefined ? unset : `${textAt(kind, 'apiVersion')}/${textAt(kind, 'kind')}`;
}

/** Bindings of both kinds of policy. */
export const policyBindingsTable = namedTable(
  [
    column('PolicyName', 'The policy that is bound.'),
    column('ParamRef', 'The parameters that it is bound with.'),
  ],
  (object) => {
    const reference = at(object, 'spec', 'paramRef');
    return [textAt(object, 'spec', 'policyName'), reference === undefined ? unset : referenceText(reference)];
  },
);

/** The parameters by name, or else by selector; `*` for the namespace where none is named. */
function referenceText(reference: unknown): string {
  const name = textAt(reference, 'name');
  if (name !== '') return `${textAt(reference, 'namespace') || '*'}/${name}`;
  const selector = at(reference, 'selector');
  return selector === undefined ? unset : goSelector(selector);
}

/** A selector as Go prints its generated type. */
function goSelector(selector: unknown): string {
  const labels = Object.entries(recordAt(selector, 'matchLabels'))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}: ${String(value)},`);
  const expressions = listAt(selector, 'matchExpressions').map((expression) => {
    const values = listAt(expression, 'values').map(String).join(' ');
    const [key, operator] = [textAt(expression, 'key'), textAt(expression, 'operator')];
    return `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values}],},`;
  });
  const parts = [
    `MatchLabels:map[string]string{${labels.join('')}},`,
    `MatchExpressions:[]LabelSelectorRequirement{${expressions.join('')}},`,
  ];
  return `&LabelSelector{${parts.join('')}}`;
}

const none = '<none>';

/** The order in which FlowSchemas are matched with requests. */
function byPrecedence(a: KubeObject, b: KubeObject): number {
  const difference = numberAt(a, 'spec', 'matchingPrecedence') - numberAt(b, 'spec', 'matchingPrecedence');
  return difference || (nameOf(a) < nameOf(b) ? -1 : 1);
}

export const flowSchemasTable: TableConverter = {
  columns: [
    nameColumn,
    column('PriorityLevel', 'The priority level of the requests.'),
    column('MatchingPrecedence', 'Lower values are matched first.'),
    column('DistinguisherMethod', 'How requests are divided into flows.'),
    ageColumn,
    column('MissingPL', 'Whether the priority level does not exist.'),
  ],
  order: byPrecedence,
  cells: (object, now) => {
    const dangling = listAt(object, 'status', 'conditions').find(
      (each) => textAt(each, 'type') === 'Dangling',
    );
    return [
      nameOf(object),
      textAt(object, 'spec', 'priorityLevelConfiguration', 'name'),
      numberAt(object, 'spec', 'matchingPrecedence'),
      at(object, 'spec', 'distinguisherMethod') === undefined
        ? none
        : textAt(object, 'spec', 'distinguisherMethod', 'type'),
      ageOf(object, now),
      dangling === undefined ? '?' : textAt(dangling, 'status'),
    ];
  },
};

export const priorityLevelConfigurationsTable: TableConverter = {
  columns: [
    nameColumn,
    column('Type', 'Whether its requests are limited.'),
    column('NominalConcurrencyShares', 'Its share of the concurrent requests.'),
    column('Queues', 'The number of queues.'),
    column('HandSize', 'The number of queues of which a flow uses the shortest.'),
    column('QueueLengthLimit', 'The limit of requests in a queue.'),
    ageColumn,
  ],
  cells: (object, now) => {
    const limited = at(object, 'spec', 'limited');
    const queuing = at(limited, 'limitResponse', 'queuing');
    const queuingCell = (member: string) => (queuing === undefined ? none : numberAt(queuing, member));
    return [
      nameOf(object),
      textAt(object, 'spec', 'type'),
      limited === undefined ? none : numberAt(limited, 'nominalConcurrencyShares'),
      queuingCell('queues'),
      queuingCell('handSize'),
      queuingCell('queueLengthLimit'),
      ageOf(object, now),
    ];
  },
};

/** apiextensions-apiserver `registry/customresourcedefinition/tableconvertor`. */
export const customResourceDefinitionsTable: TableConverter = {
  columns: [
    nameColumn,
    column('Scope', 'Whether its objects are in namespaces: Namespaced or Cluster.'),
    column('Versions', 'The versions that are served; objects are stored in the marked one.'),
    column('Created At', 'When it was created.', { type: 'date' }),
    wideColumn('Group', 'The API group of its objects.'),
    wideColumn('Kind', 'The kind of its objects.'),
    wideColumn('ShortNames', 'Short names of the kind.'),
    column('Established', 'Whether its objects are served.', { type: 'boolean', priority: 1 }),
  ],
  cells(object) {
    const versions = listAt(object, 'spec', 'versions')
      .filter((version) => at(version, 'served') === true)
      .map((version) => `${textAt(version, 'name')}${at(version, 'storage') === true ? '(storage)' : ''}`);
    return [
      nameOf(object),
      textAt(object, 'spec', 'scope'),
      versions.sort().join(','),
      object.metadata.creationTimestamp ?? '0001-01-01T00:00:00Z',
      textAt(object, 'spec', 'group'),
      textAt(object, 'spec', 'names', 'kind'),
      listAt(object, 'spec', 'names', 'shortNames').join(','),
      conditionStatus(listAt(object, 'status', 'conditions'), 'Established') === 'True',
    ];
  },
};
