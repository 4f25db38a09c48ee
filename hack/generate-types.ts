/**
 * Writes the TypeScript types of Kubernetes objects, one file for each API group: `src/objects/types/<group>.generated.ts`,
 * from the table that generate-schemas.ts makes of hack/openapi.
 *
 * A member is required if OpenAPI requires it, or if it is the `spec` or `status` of a kind, which the API server always
 * writes. Inside these two, what Go writes even when it is empty is required, because objects are read before they are
 * validated; in groups that controllers read, only if OpenAPI requires it too; in a status nothing is required, because
 * it is empty at first; conditions are whole. A member may be null where Go writes null for a nil value. Enumerations are `string`: clients
 * may send anything.
 *
 * Run: node hack/generate-types.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';
import { isRecord } from '../src/objects/json.ts';

const table = new URL('../src/apiserver/schema/builtin.generated.json', import.meta.url);
const objects = new URL('../src/objects/types/', import.meta.url);

/** The components whose types are written, with all that they refer to. */
const roots = [
  'api.admissionregistration.v1.MutatingAdmissionPolicy',
  'api.admissionregistration.v1.MutatingWebhook',
  'api.admissionregistration.v1.ValidatingAdmissionPolicy',
  'api.admissionregistration.v1.ValidatingAdmissionPolicyBinding',
  'api.apps.v1.ControllerRevision',
  'api.apps.v1.DaemonSet',
  'api.apps.v1.Deployment',
  'api.apps.v1.ReplicaSet',
  'api.apps.v1.StatefulSet',
  'api.autoscaling.v1.Scale',
  'api.autoscaling.v2.HorizontalPodAutoscaler',
  'api.batch.v1.CronJob',
  'api.batch.v1.Job',
  'api.certificates.v1.CertificateSigningRequest',
  'api.certificates.v1.ClusterTrustBundle',
  'api.certificates.v1.PodCertificateRequest',
  'api.coordination.v1.Lease',
  'api.core.v1.Binding',
  'api.core.v1.ConfigMap',
  'api.core.v1.Endpoints',
  'api.core.v1.Event',
  'api.core.v1.LimitRange',
  'api.core.v1.Namespace',
  'api.core.v1.Node',
  'api.core.v1.PersistentVolume',
  'api.core.v1.PersistentVolumeClaim',
  'api.core.v1.Pod',
  'api.core.v1.PodTemplate',
  'api.core.v1.ReplicationController',
  'api.core.v1.ResourceQuota',
  'api.core.v1.Secret',
  'api.core.v1.Service',
  'api.core.v1.ServiceAccount',
  'api.discovery.v1.EndpointSlice',
  'api.flowcontrol.v1.FlowSchema',
  'api.flowcontrol.v1.PriorityLevelConfiguration',
  'api.networking.v1.IPAddress',
  'api.networking.v1.Ingress',
  'api.networking.v1.IngressClass',
  'api.networking.v1.NetworkPolicy',
  'api.networking.v1.ServiceCIDR',
  'api.node.v1.RuntimeClass',
  'api.policy.v1.PodDisruptionBudget',
  'api.rbac.v1.ClusterRole',
  'api.rbac.v1.RoleBinding',
  'api.resource.v1.DeviceClass',
  'api.resource.v1.DeviceTaintRule',
  'api.resource.v1.ResourceClaim',
  'api.resource.v1.ResourceClaimTemplate',
  'api.resource.v1.ResourceSlice',
  'api.scheduling.v1.PriorityClass',
  'api.storage.v1.CSIDriver',
  'api.storage.v1.CSINode',
  'api.storage.v1.CSIStorageCapacity',
  'api.storage.v1.StorageClass',
  'api.storage.v1.VolumeAttachment',
  'api.storage.v1.VolumeAttributesClass',
  'api.storagemigration.v1.StorageVersionMigration',
  'apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition',
  'kube-aggregator.pkg.apis.apiregistration.v1.APIService',
]
  .map((name) => `io.k8s.${name}`)
  .concat('com.github.openshift.api.route.v1.Route');

/** Groups that controllers read. */
const watched = new Set(['apps', 'batch', 'core', 'discovery', 'policy']);

/** Members that controllers read, and that are never null in valid objects. */
const validated = new Set([
  'DaemonSetSpec.selector',
  'DeploymentSpec.selector',
  'Endpoint.addresses',
  'NodeSelector.nodeSelectorTerms',
  'PodSpec.containers',
  'ReplicaSetSpec.selector',
  'StatefulSetSpec.selector',
]);

/** The API server fills it as soon as the object is created. */
const filledStatus = 'CustomResourceDefinitionStatus';

/** What all objects share is in `objects/meta.ts`. */
const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1.';

const leaves: Readonly<Record<string, string>> = {
  string: 'string',
  bytes: 'string',
  time: 'string',
  microTime: 'string',
  quantity: 'string',
  boolean: 'boolean',
  number: 'number',
  int32: 'number',
  int64: 'number',
  intOrString: 'number | string',
  any: 'unknown',
  fieldsV1: 'FieldsV1',
  JSONSchemaPropsOrArray: 'JSONSchemaProps | JSONSchemaProps[]',
  JSONSchemaPropsOrBool: 'boolean | JSONSchemaProps',
  JSONSchemaPropsOrStringArray: 'JSONSchemaProps | string[]',
};

interface Member {
  readonly name: string;
  readonly flags: string;
  readonly type: string;
  readonly isNull: boolean;
}

interface Component {
  readonly id: string;
  /** Go's name. */
  readonly name: string;
  readonly group: string;
  readonly isKind: boolean;
  readonly members: readonly Member[];
}

const source: unknown = JSON.parse(readFileSync(table, 'utf8'));
const texts = isRecord(source) && isRecord(source['types']) ? source['types'] : {};

function component(id: string): Component {
  const text = texts[id];
  if (typeof text !== 'string') throw new Error(`hack/openapi has no ${id}`);
  const [head = '', ...lines] = text.split('\n');
  const members = lines.map((line) => {
    const [name = '', flags = '', type = '', ...options] = line.split(' ');
    return { name, flags, type, isNull: options.includes('null') };
  });
  const [name = ''] = head.split(' ');
  const group = id.split('.').at(-3) ?? '';
  return {
    id,
    name,
    group,
    isKind:
      members.some((member) => member.name === 'apiVersion') &&
      members.some((member) => member.name === 'metadata'),
    members,
  };
}

/** The component that a type expression (`[]#id`, `{}string`) leads to. */
function targetOf(type: string): string | undefined {
  const at = type.indexOf('#');
  return at < 0 ? undefined : type.slice(at + 1);
}

const found = new Map<string, Component>();
for (const queue = [...roots]; queue.length > 0;) {
  const id = queue.pop() ?? '';
  if (found.has(id)) continue;
  const next = component(id);
  found.set(id, next);
  for (const { type } of next.members) {
    const target = targetOf(type);
    if (target !== undefined && !target.startsWith(meta)) queue.push(target);
  }
}

/** The components of members `spec` and `status`. */
const parts = new Set(
  [...found.values()].flatMap(({ members }) =>
    members.filter(({ name }) => isPart(name)).flatMap(({ type }) => targetOf(type) ?? []),
  ),
);

function isPart(name: string): boolean {
  return name === 'spec' || name === 'status';
}

function expression(type: string): string {
  if (type.startsWith('[]')) {
    const item = expression(type.slice(2));
    return item.includes(' ') ? `(${item})[]` : `${item}[]`;
  }
  if (type.startsWith('{}')) return `Record<string, ${expression(type.slice(2))}>`;
  const target = targetOf(type);
  if (target !== undefined) return target.slice(target.lastIndexOf('.') + 1);
  const leaf = leaves[type];
  if (leaf === undefined) throw new Error(`no TypeScript type for ${type}`);
  return leaf;
}

function declaration({ id, name, isKind, members }: Component): string {
  const [, version = ''] = id.split('.').slice(-3);
  const group = id.split('.').at(-3) ?? '';
  const own = members.filter(
    (member) => !isKind || !['kind', 'apiVersion', 'metadata'].includes(member.name),
  );
  const lines = own.map((member) => {
    const { flags, type, isNull } = member;
    const isList = type.startsWith('[]') || type.startsWith('{}');
    const isAlways = (isKind && isPart(member.name)) || (isList && flags === 'z');
    const isTime = type === 'time' || type === 'microTime';
    const isNil = flags.startsWith('z') && (isNull || isList || isTime);
    const isWritten = flags.startsWith('z') && !isNil;
    const isRequired =
      isAlways ||
      (name === filledStatus && isWritten) ||
      (parts.has(id)
        ? isWritten && !name.endsWith('Status') && (!watched.has(group) || flags === 'zr')
        : flags === 'zr' || (isWritten && name.endsWith('Condition')));
    const nullable = isNil && !validated.has(`${name}.${member.name}`);
    return `  ${quoted(member.name)}${isRequired ? '' : '?'}: ${expression(type)}${nullable ? ' | null' : ''};`;
  });
  if (own.length === 0) return `/** ${group}/${version} ${name}. */\nexport type ${name} = object;\n`;
  return `/** ${group}/${version} ${name}. */\nexport interface ${name}${isKind ? ' extends KubeObject' : ''} {\n${lines.join('\n')}\n}\n`;
}

/** `x-kubernetes-…` is no identifier. */
function quoted(name: string): string {
  return name.includes('-') ? `'${name}'` : name;
}

const style = await resolveConfig(objects);
const groups = new Map<string, Component[]>();
for (const next of [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
  groups.set(next.group, [...(groups.get(next.group) ?? []), next]);
}
for (const [group, components] of groups) {
  const imports = new Map<string, Set<string>>();
  const take = (file: string, name: string): void => {
    imports.set(file, (imports.get(file) ?? new Set()).add(name));
  };
  for (const { isKind, members } of components) {
    if (isKind) take('../meta.ts', 'KubeObject');
    for (const { type } of members) {
      const target = targetOf(type);
      const name = target?.slice(target.lastIndexOf('.') + 1) ?? '';
      if (target === undefined || (isKind && name === 'ObjectMeta')) continue;
      if (target.startsWith(meta)) take('../meta.ts', name);
      else if (found.get(target)?.group !== group)
        take(`./${found.get(target)?.group ?? ''}.generated.ts`, name);
    }
  }
  const text = [
    '// Generated by hack/generate-types.ts from hack/openapi. Do not edit.',
    ...[...imports]
      .sort()
      .map(([file, names]) => `import type { ${[...names].sort().join(', ')} } from '${file}';`),
    '',
    ...components.map(declaration),
  ].join('\n');
  writeFileSync(
    new URL(`${group}.generated.ts`, objects),
    await format(text, { ...style, parser: 'typescript' }),
  );
}
