import type {
  MutatingWebhook,
  RuleWithOperations,
} from '../../objects/types/admissionregistration.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { duplicate, type FieldError, invalid, notSupported, required } from '../validation/field-errors.ts';
import { validateLabelSelector } from '../validation/label-selector.ts';
import { isDNS1123Subdomain, nameIsDNSSubdomain } from '../../objects/names.ts';
import { validateClientConfig } from '../validation/network.ts';
import { validateMatchConditions } from './expressions.ts';
import { refusingStaticNames } from './static-names.ts';
import { jsonEqual } from '../../objects/json.ts';
import { genericStrategy } from '../generic/generic.ts';
import type { Strategy } from '../generic/strategy.ts';
import type { KubeObject } from '../../objects/meta.ts';

const operations = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
const scopes = ['*', 'Cluster', 'Namespaced'];
const reviewVersions = ['v1', 'v1beta1'];
const minTimeoutSeconds = 1;
const maxTimeoutSeconds = 30;

/** The rules of webhooks (`apis/admissionregistration/validation`). */
function validateWebhooks(webhooks: readonly MutatingWebhook[], mutating: boolean): FieldError[] {
  const names = new Set<string>();
  return webhooks.flatMap((webhook, i) => {
    const { name } = webhook;
    const path = `webhooks[${i}]`;
    const errors = validateWebhook(webhook, mutating, path);
    if (name !== '' && names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
    return errors;
  });
}

function validateWebhook(webhook: MutatingWebhook, mutating: boolean, path: string): FieldError[] {
  const errors = validateName(webhook.name, `${path}.name`);
  pushAll(
    errors,
    validateReviewVersions(webhook.admissionReviewVersions ?? [], `${path}.admissionReviewVersions`),
  );
  (webhook.rules ?? []).forEach((rule, i) => pushAll(errors, validateRule(rule, `${path}.rules[${i}]`)));
  const choice = (
    member: 'failurePolicy' | 'matchPolicy' | 'reinvocationPolicy',
    words: readonly string[],
  ) => {
    const value = webhook[member];
    if (value !== undefined && !words.includes(value))
      errors.push(notSupported(`${path}.${member}`, value, words));
  };
  choice('failurePolicy', ['Fail', 'Ignore']);
  choice('matchPolicy', ['Equivalent', 'Exact']);
  const effects = webhook.sideEffects ?? '';
  if (effects === '') errors.push(required(`${path}.sideEffects`, 'must specify one of None, NoneOnDryRun'));
  else if (effects !== 'None' && effects !== 'NoneOnDryRun') {
    errors.push(notSupported(`${path}.sideEffects`, effects, ['None', 'NoneOnDryRun']));
  }
  const { timeoutSeconds } = webhook;
  if (
    timeoutSeconds !== undefined &&
    (timeoutSeconds < minTimeoutSeconds || timeoutSeconds > maxTimeoutSeconds)
  ) {
    const detail = `the timeout value must be between ${minTimeoutSeconds} and ${maxTimeoutSeconds} seconds`;
    errors.push(invalid(`${path}.timeoutSeconds`, timeoutSeconds, detail));
  }
  pushAll(errors, validateLabelSelector(webhook.namespaceSelector, `${path}.namespaceSelector`));
  pushAll(errors, validateLabelSelector(webhook.objectSelector, `${path}.objectSelector`));
  pushAll(errors, validateMatchConditions(webhook.matchConditions ?? [], `${path}.matchConditions`));
  if (mutating) choice('reinvocationPolicy', ['IfNeeded', 'Never']);
  pushAll(errors, validateClientConfig(webhook.clientConfig, `${path}.clientConfig`));
  return errors;
}

/** `IsFullyQualifiedName`: a domain of three labels at least. */
function validateName(name: string, path: string): FieldError[] {
  if (name === '') return [required(path)];
  const faults = isDNS1123Subdomain(name);
  if (faults.length > 0) return [invalid(path, name, faults.join(','))];
  return name.split('.').length < 3
    ? [invalid(path, name, 'should be a domain with at least three segments separated by dots')]
    : [];
}

function validateReviewVersions(versions: readonly string[], path: string): FieldError[] {
  if (versions.length === 0) {
    return [required(path, `must specify one of ${reviewVersions.join(', ')}`)];
  }
  const errors: FieldError[] = [];
  versions.forEach((version, i) => {
    if (versions.indexOf(version) < i) errors.push(invalid(`${path}[${i}]`, version, 'duplicate version'));
  });
  if (!versions.some((version) => reviewVersions.includes(version))) {
    const detail = `must include at least one of ${reviewVersions.join(', ')}`;
    errors.push(invalid(path, versions, detail));
  }
  return errors;
}

function validateRule(rule: RuleWithOperations, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if ((rule.operations ?? []).length === 0) errors.push(required(`${path}.operations`));
  (rule.operations ?? []).forEach((operation, i) => {
    if (!operations.includes(operation)) {
      errors.push(notSupported(`${path}.operations[${i}]`, operation, operations));
    }
  });
  for (const member of ['operations', 'apiGroups', 'apiVersions', 'resources'] as const) {
    const values = rule[member] ?? [];
    if (member !== 'operations' && values.length === 0) errors.push(required(`${path}.${member}`));
    if (member !== 'resources' && values.length > 1 && values.includes('*')) {
      const detail = "if '*' is present, must not specify other " + described[member];
      errors.push(invalid(`${path}.${member}`, values, detail));
    }
  }
  (rule.apiVersions ?? []).forEach((version, i) => {
    if (version === '') errors.push(required(`${path}.apiVersions[${i}]`));
  });
  (rule.resources ?? []).forEach((resource, i) => {
    if (resource === '') errors.push(required(`${path}.resources[${i}]`));
  });
  if (rule.scope !== undefined && !scopes.includes(rule.scope)) {
    errors.push(notSupported(`${path}.scope`, rule.scope, scopes));
  }
  return errors;
}

const described = { operations: 'operations', apiGroups: 'API groups', apiVersions: 'API versions' };

/** Admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration and MutatingWebhookConfiguration. */
export interface WebhookConfiguration extends KubeObject {
  webhooks?: MutatingWebhook[];
}

/** The rules of ValidatingWebhookConfigurations (`apis/admissionregistration/v1/defaults.go`). */
export const validatingWebhookStrategy = strategyOf(false);

/** The rules of MutatingWebhookConfigurations. */
export const mutatingWebhookStrategy = strategyOf(true);

function strategyOf(mutating: boolean): Strategy<WebhookConfiguration> {
  const rules = genericStrategy<WebhookConfiguration>({
    namespaced: false,
    nameRule: nameIsDNSSubdomain,
    metadataRules: 'machinery',
    allowUnconditionalUpdate: false,
    generationChanges: (object, old) => !jsonEqual(object.webhooks ?? [], old.webhooks ?? []),
    repeatsCreate: 'instead',
    setDefaults({ webhooks = [] }) {
      for (const webhook of webhooks) setWebhookDefaults(webhook, mutating);
    },
    validateCreate: ({ webhooks = [] }) => validateWebhooks(webhooks, mutating),
    warningsOnCreate: warnOfExcluded,
    warningsOnUpdate: warnOfExcluded,
  });
  return refusingStaticNames(rules);
}

/** Rules that name what webhooks are not asked about (`WarningsForValidatingWebhookRules`). */
function warnOfExcluded({ webhooks = [] }: WebhookConfiguration): string[] {
  return webhooks.flatMap(({ rules = [] }, i) =>
    rules.flatMap(({ apiGroups, resources }, j) =>
      excludedOf(apiGroups ?? [], resources ?? []).map(
        (name) =>
          `webhooks[${i}].rules[${j}]: ${name} is excluded from admission webhooks; this rule will have no effect`,
      ),
    ),
  );
}

function excludedOf(groups: readonly string[], resources: readonly string[]): string[] {
  if (groups.includes('*') || resources.includes('*')) return [];
  const named = groups.flatMap((group) =>
    resources.filter((resource) => isReview(group, resource)).map((resource) => `${resource}.${group}`),
  );
  return [...new Set(named)];
}

const reviews: ReadonlyMap<string, readonly string[]> = new Map([
  ['authentication.k8s.io', ['selfsubjectreviews', 'tokenreviews']],
  [
    'authorization.k8s.io',
    [
      'localsubjectaccessreviews',
      'selfsubjectaccessreviews',
      'selfsubjectrulesreviews',
      'subjectaccessreviews',
    ],
  ],
]);

/**
 * True for the reviews of users and rights, which neither webhooks nor policies are asked about: they may need them
 * themselves (`kubeapiserver/admission/exclusion`).
 */
export function isReview(group: string, plural: string): boolean {
  return reviews.get(group)?.includes(plural) === true;
}

function setWebhookDefaults(webhook: MutatingWebhook, mutating: boolean): void {
  webhook.failurePolicy ??= 'Fail';
  webhook.matchPolicy ??= 'Equivalent';
  webhook.namespaceSelector ??= {};
  webhook.objectSelector ??= {};
  webhook.timeoutSeconds ??= 10;
  if (mutating) webhook.reinvocationPolicy ??= 'Never';
  if (webhook.clientConfig.service !== undefined) webhook.clientConfig.service.port ??= 443;
  for (const rule of webhook.rules ?? []) rule.scope ??= '*';
}
