import type {
  FlowSchema,
  PolicyRulesWithSubjects,
  Subject,
  FlowSchemaSpec,
  NonResourcePolicyRule,
  ResourcePolicyRule,
} from '../../objects/types/flowcontrol.generated.ts';
import { autoUpdateAnnotation, validateFlowConditions, flowStatus } from './prioritylevelconfiguration.ts';
import { jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../validation/field-errors.ts';
import { nameIsDNSLabel, nameIsDNSSubdomain } from '../../objects/names.ts';
import { genericStrategy, isSpecChanged, addEmptyParts } from '../generic/generic.ts';
import type { Strategy } from '../generic/strategy.ts';

/**
 * - The FlowSchemas that a server has from the start (apiserver `apis/flowcontrol/bootstrap`).
 * - The rules of FlowSchemas (`pkg/apis/flowcontrol/validation`).
 */

/** Every request. */
const everything: Omit<PolicyRulesWithSubjects, 'subjects'> = {
  resourceRules: [
    { verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*'] },
  ],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
};
const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'], namespaces: ['*'] };
const allUsers = [group('system:unauthenticated'), group('system:authenticated')];
const nodes = [group('system:nodes')];
const controllerManager = user('system:kube-controller-manager');
const scheduler = user('system:kube-scheduler');
const systemAccounts: Subject = {
  kind: 'ServiceAccount',
  serviceAccount: { name: '*', namespace: 'kube-system' },
};

/** The mandatory objects (apiserver `apis/flowcontrol/bootstrap`): their specs are fixed. */
export const mandatoryFlowSchemas: readonly FlowSchema[] = [
  schema('exempt', 'exempt', 1, undefined, { subjects: [group('system:masters')], ...everything }),
  schema('catch-all', 'catch-all', 10_000, 'ByUser', { subjects: allUsers, ...everything }),
];

/** The suggested objects of a new cluster. */
export const suggestedFlowSchemas: readonly FlowSchema[] = [
  schema('system-nodes', 'system', 500, 'ByUser', { subjects: nodes, ...everything }),
  schema('system-node-high', 'node-high', 400, 'ByUser', {
    subjects: nodes,
    resourceRules: [
      {
        ...{ verbs: ['*'], apiGroups: [''], resources: ['nodes', 'nodes/status'] },
        ...{ clusterScope: true, namespaces: ['*'] },
      },
      { verbs: ['*'], ...leases },
    ],
  }),
  schema('probes', 'exempt', 2, undefined, {
    subjects: allUsers,
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] }],
  }),
  schema('system-leader-election', 'leader-election', 100, 'ByUser', {
    subjects: [controllerManager, scheduler, systemAccounts],
    resourceRules: [{ verbs: ['get', 'create', 'update'], ...leases }],
  }),
  schema('kube-controller-manager', 'workload-high', 800, 'ByNamespace', {
    subjects: [controllerManager],
    ...everything,
  }),
  schema('kube-scheduler', 'workload-high', 800, 'ByNamespace', { subjects: [scheduler], ...everything }),
  schema('kube-system-service-accounts', 'workload-high', 900, 'ByNamespace', {
    subjects: [systemAccounts],
    ...everything,
  }),
  schema('service-accounts', 'workload-low', 9000, 'ByUser', {
    subjects: [group('system:serviceaccounts')],
    ...everything,
  }),
  schema('global-default', 'global-default', 9900, 'ByUser', { subjects: allUsers, ...everything }),
];

function group(name: string): Subject {
  return { kind: 'Group', group: { name } };
}

function user(name: string): Subject {
  return { kind: 'User', user: { name } };
}

function schema(
  name: string,
  level: string,
  matchingPrecedence: number,
  distinguisher: string | undefined,
  rule: PolicyRulesWithSubjects,
): FlowSchema {
  return {
    metadata: { name, annotations: { [autoUpdateAnnotation]: 'true' } },
    spec: {
      priorityLevelConfiguration: { name: level },
      matchingPrecedence,
      ...(distinguisher === undefined ? {} : { distinguisherMethod: { type: distinguisher } }),
      rules: [rule],
    },
    status: {},
  };
}

const maxPrecedence = 10_000;
const methods = ['ByNamespace', 'ByUser'];
const subjectKinds = ['Group', 'ServiceAccount', 'User'];
const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'proxy', 'update', 'watch'];
const namespaceRule = "each member of this list must be '*' or a DNS-1123 label; ";

function validateFlowSchema({ metadata: { name = '' }, spec, status }: FlowSchema): FieldError[] {
  const errors = validateSpec(spec, name);
  const fixed = mandatoryFlowSchemas.find((each) => each.metadata.name === name);
  if (fixed !== undefined && !jsonEqual(spec, fixed.spec)) {
    errors.push(invalid('spec', printed(spec), `spec of "${name}" must equal the fixed value`));
  }
  return [...errors, ...validateFlowConditions(status.conditions)];
}

function validateSpec(spec: FlowSchemaSpec, name: string): FieldError[] {
  const { matchingPrecedence: precedence, distinguisherMethod, rules = [] } = spec;
  const errors: FieldError[] = [];
  const wrong = (detail: string) => errors.push(invalid('spec.matchingPrecedence', precedence, detail));
  if (precedence <= 0) wrong('must be a positive value');
  if (precedence > maxPrecedence) wrong(`must not be greater than ${maxPrecedence}`);
  if (precedence === 1 && name !== 'exempt') {
    wrong("only the schema named 'exempt' may have matchingPrecedence 1");
  }
  if (distinguisherMethod !== undefined) {
    const { type } = distinguisherMethod;
    if (!methods.includes(type)) {
      errors.push(notSupported('spec.distinguisherMethod.type', { Type: type }, methods));
    }
  }
  const level = spec.priorityLevelConfiguration.name;
  const path = 'spec.priorityLevelConfiguration.name';
  if (level === '') errors.push(required(path, 'must reference a priority level'));
  else for (const message of nameIsDNSSubdomain(level, false)) errors.push(invalid(path, level, message));
  rules.forEach((rule, i) => pushAll(errors, validateRule(rule, `spec.rules[${i}]`)));
  return errors;
}

function validateRule(rule: PolicyRulesWithSubjects, path: string): FieldError[] {
  const { resourceRules = [], nonResourceRules = [] } = rule;
  const subjects = rule.subjects ?? [];
  const errors: FieldError[] = [];
  if (subjects.length === 0) {
    errors.push(required(`${path}.subjects`, 'subjects must contain at least one value'));
  }
  subjects.forEach((subject, i) => pushAll(errors, validateSubject(subject, `${path}.subjects[${i}]`)));
  if (resourceRules.length === 0 && nonResourceRules.length === 0) {
    errors.push(required(path, 'at least one of resourceRules and nonResourceRules has to be non-empty'));
  }
  resourceRules.forEach((each, i) =>
    pushAll(errors, validateResourceRule(each, `${path}.resourceRules[${i}]`)),
  );
  nonResourceRules.forEach((each, i) =>
    pushAll(errors, validateNonResourceRule(each, `${path}.nonResourceRules[${i}]`)),
  );
  return errors;
}

/** The member of each kind, in the order of errors for members that do not belong there. */
const subjectMembers = new Map([
  ['ServiceAccount', 'serviceAccount'],
  ['User', 'user'],
  ['Group', 'group'],
] as const);

function validateSubject(subject: Subject, path: string): FieldError[] {
  const { kind } = subject;
  const errors = ownErrors(subject, path);
  if (errors === undefined) return [notSupported(`${path}.kind`, kind, subjectKinds)];
  for (const [other, member] of subjectMembers) {
    if (other === kind || subject[member] === undefined) continue;
    const detail = `${member} is forbidden when subject kind is not '${other}'`;
    errors.push(forbiddenField(`${path}.${member}`, detail));
  }
  return errors;
}

/** The errors of the member that the kind requires; undefined for an unknown kind. */
function ownErrors({ kind, user, group, serviceAccount }: Subject, path: string) {
  switch (kind) {
    case 'ServiceAccount':
      return validateAccount(serviceAccount, `${path}.serviceAccount`);
    case 'User':
      return validateNamed(user, `${path}.user`, "user is required when subject kind is 'User'");
    case 'Group':
      return validateNamed(group, `${path}.group`, "group is required when subject kind is 'Group'");
    default:
      return undefined;
  }
}

function validateNamed(subject: { name?: string } | undefined, path: string, lack: string): FieldError[] {
  if (subject === undefined) return [required(path, lack)];
  return (subject.name ?? '') === '' ? [required(`${path}.name`)] : [];
}

function validateAccount(account: Subject['serviceAccount'], path: string): FieldError[] {
  if (account === undefined) {
    return [required(path, "serviceAccount is required when subject kind is 'ServiceAccount'")];
  }
  const { name, namespace } = account;
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${path}.name`));
  else if (name !== '*') {
    for (const message of nameIsDNSSubdomain(name, false)) {
      errors.push(invalid(`${path}.name`, name, message));
    }
  }
  if (namespace === '') {
    errors.push(required(`${path}.namespace`, 'must specify namespace for service account'));
  } else {
    for (const message of nameIsDNSLabel(namespace, false)) {
      errors.push(invalid(`${path}.namespace`, namespace, message));
    }
  }
  return errors;
}

function validateVerbs(given: readonly string[], path: string): FieldError[] {
  if (given.length === 0) return [required(path, 'verbs must contain at least one value')];
  if (given.includes('*')) return onlyStar(given, path, 'verbs');
  return given.every((verb) => verbs.includes(verb)) ? [] : [notSupported(path, given, verbs)];
}

/** A star means all: it must be the only item. */
function onlyStar(given: readonly string[], path: string, what: string): FieldError[] {
  if (given.length <= 1 || !given.includes('*')) return [];
  return [invalid(path, given, `if '*' is present, must not specify other ${what}`)];
}

function validateNonResourceRule(rule: NonResourcePolicyRule, path: string): FieldError[] {
  const urls = rule.nonResourceURLs ?? [];
  const errors = validateVerbs(rule.verbs ?? [], `${path}.verbs`);
  const place = `${path}.nonResourceURLs`;
  if (urls.length === 0) {
    errors.push(required(place, 'nonResourceURLs must contain at least one value'));
  } else if (urls.includes('*')) pushAll(errors, onlyStar(urls, place, 'non-resource URLs'));
  else {
    urls.forEach((url, i) => {
      const why = pathFault(url);
      if (why !== undefined) errors.push(invalid(`${place}[${i}]`, url, why));
    });
  }
  return errors;
}

/** `ValidateNonResourceURLPath`: a star is allowed only at the end of the path. */
function pathFault(url: string): string | undefined {
  if (url === '') return 'must not be empty';
  if (url === '/') return undefined;
  if (!url.startsWith('/')) return 'must start with slash';
  if (url.includes(' ')) return 'must not contain white-space';
  if (url.includes('//')) return 'must not contain double slash';
  const star = url.indexOf('*');
  const isSuffix = star === url.length - 1 && url.endsWith('/*');
  return star === -1 || isSuffix ? undefined : 'wildcard can only do suffix matching';
}

function validateResourceRule(rule: ResourcePolicyRule, path: string): FieldError[] {
  const { clusterScope = false } = rule;
  const [apiGroups, resources, namespaces] = [
    rule.apiGroups ?? [],
    rule.resources ?? [],
    rule.namespaces ?? [],
  ];
  const errors = validateVerbs(rule.verbs ?? [], `${path}.verbs`);
  if (apiGroups.length === 0) {
    errors.push(required(`${path}.apiGroups`, 'resource rules must supply at least one api group'));
  }
  pushAll(errors, onlyStar(apiGroups, `${path}.apiGroups`, 'api groups'));
  if (resources.length === 0) {
    errors.push(required(`${path}.resources`, 'resource rules must supply at least one resource'));
  }
  pushAll(errors, onlyStar(resources, `${path}.resources`, 'resources'));
  const place = `${path}.namespaces`;
  if (namespaces.length === 0 && !clusterScope) {
    const detail = 'resource rules that are not cluster scoped must supply at least one namespace';
    errors.push(required(place, detail));
  } else if (namespaces.includes('*')) pushAll(errors, onlyStar(namespaces, place, 'namespaces'));
  else {
    namespaces.forEach((namespace, i) => {
      for (const message of nameIsDNSLabel(namespace, false)) {
        errors.push(invalid(`${place}[${i}]`, namespace, namespaceRule + message));
      }
    });
  }
  return errors;
}

/** The spec as kube-apiserver prints it, with Go's field names. */
function printed(spec: FlowSchemaSpec): object {
  const { priorityLevelConfiguration: level, distinguisherMethod: method, rules } = spec;
  const named = (subject: { name?: string } | undefined) =>
    subject === undefined ? null : { Name: subject.name ?? '' };
  const subjectOf = ({ kind, user, group, serviceAccount: account }: Subject) => ({
    Kind: kind,
    User: named(user),
    Group: named(group),
    ServiceAccount: account === undefined ? null : { Namespace: account.namespace, Name: account.name },
  });
  return {
    PriorityLevelConfiguration: { Name: level.name },
    MatchingPrecedence: spec.matchingPrecedence,
    DistinguisherMethod: method === undefined ? null : { Type: method.type },
    Rules:
      rules?.map((rule) => ({
        Subjects: rule.subjects?.map(subjectOf) ?? null,
        ResourceRules:
          rule.resourceRules?.map((each) => ({
            Verbs: each.verbs ?? null,
            APIGroups: each.apiGroups ?? null,
            Resources: each.resources ?? null,
            ClusterScope: each.clusterScope ?? false,
            Namespaces: each.namespaces ?? null,
          })) ?? null,
        NonResourceRules:
          rule.nonResourceRules?.map((each) => ({
            Verbs: each.verbs ?? null,
            NonResourceURLs: each.nonResourceURLs ?? null,
          })) ?? null,
      })) ?? null,
  };
}

/** The rules of FlowSchemas; they have no effect on requests. */
export const flowSchemaStrategy: Strategy<FlowSchema> = {
  ...genericStrategy<FlowSchema>({
    namespaced: false,
    nameRule: nameIsDNSSubdomain,
    hasStatus: true,
    generationChanges: isSpecChanged,
    setDefaults(schema) {
      addEmptyParts(schema);
      schema.spec.matchingPrecedence ||= 1000;
    },
    validateCreate: validateFlowSchema,
    repeatsCreate: 'instead',
  }),
  status: flowStatus(),
};
