import type {
  MutatingAdmissionPolicySpec,
  Mutation,
  ValidatingAdmissionPolicySpec,
  MatchResources,
  MutatingAdmissionPolicy,
  ValidatingAdmissionPolicy,
} from '../../../objects/types/admissionregistration.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../../validation/field-errors.ts';
import { isQualifiedName, nameIsDNSSubdomain } from '../../../objects/names.ts';
import { validateMatchConditions } from '../expressions.ts';
import { compilePolicy, type CommonPolicySpec, type PolicyBinding } from './evaluate.ts';
import { compileMutations } from './mutate.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { genericStrategy, type KindRules, resetMetaForStatus, isSpecChanged } from '../../generic/generic.ts';
import type { Strategy } from '../../generic/strategy.ts';

const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge', 'Unauthorized'];
const failurePolicies = ['Fail', 'Ignore'];
const patchTypes = ['ApplyConfiguration', 'JSONPatch'];
const reinvocationPolicies = ['IfNeeded', 'Never'];

/** An expression that is required and must compile. */
function checkExpression(at: string, source: string, program: object | string | undefined): FieldError[] {
  if (source.trim() === '') return [required(at, 'expression is not specified')];
  return typeof program === 'string' ? [invalid(at, source, program)] : [];
}

type Compiled = Pick<ReturnType<typeof compilePolicy>, 'variables' | 'conditions'>;

/** The rules that policies of both kinds have before their own expressions. */
function validateCommon(spec: CommonPolicySpec, { variables }: Compiled): FieldError[] {
  const errors: FieldError[] = [];
  const { failurePolicy, matchConstraints, paramKind } = spec;
  if (failurePolicy !== undefined && !failurePolicies.includes(failurePolicy)) {
    errors.push(notSupported('spec.failurePolicy', failurePolicy, failurePolicies));
  }
  if (paramKind !== undefined) {
    for (const member of ['apiVersion', 'kind'] as const) {
      if ((paramKind[member] ?? '') === '') errors.push(required(`spec.paramKind.${member}`));
    }
  }
  if (matchConstraints === undefined) errors.push(required('spec.matchConstraints'));
  else if ((matchConstraints.resourceRules ?? []).length === 0) {
    errors.push(required('spec.matchConstraints.resourceRules'));
  }
  variables.forEach(([name, program], i) => {
    const at = `spec.variables[${i}]`;
    if (name === '') errors.push(required(`${at}.name`, 'name is not specified'));
    pushAll(errors, checkExpression(`${at}.expression`, spec.variables?.[i]?.expression ?? '', program));
  });
  return errors;
}

function validateConditions(spec: CommonPolicySpec, { conditions }: Compiled): FieldError[] {
  const known = new Map(conditions.map(({ expression, program }) => [expression.trim(), program]));
  return validateMatchConditions(spec.matchConditions ?? [], 'spec.matchConditions', (source) =>
    known.get(source),
  );
}

/** The expressions of a policy are required and must compile (`apis/admissionregistration/validation`). */
function validatePolicySpec(spec: ValidatingAdmissionPolicySpec): FieldError[] {
  const compiled = compilePolicy(spec);
  const { validations, annotations } = compiled;
  const errors = validateCommon(spec, compiled);
  if (validations.length === 0 && annotations.length === 0) {
    const detail = 'validations or auditAnnotations must contain at least one item';
    errors.push(required('spec.validations', detail));
  }
  validations.forEach(({ validation, program, message }, i) => {
    const at = `spec.validations[${i}]`;
    pushAll(errors, checkExpression(`${at}.expression`, validation.expression, program));
    const { messageExpression = '', reason } = validation;
    if (messageExpression !== '') {
      pushAll(errors, checkExpression(`${at}.messageExpression`, messageExpression, message));
    }
    if (reason !== undefined && !reasons.includes(reason)) {
      errors.push(notSupported(`${at}.reason`, reason, reasons));
    }
  });
  annotations.forEach(({ source, program }, i) => {
    const at = `spec.auditAnnotations[${i}]`;
    const { key = '' } = spec.auditAnnotations?.[i] ?? {};
    if (key === '') errors.push(required(`${at}.key`));
    else
      pushAll(
        errors,
        isQualifiedName(key).map((fault) => invalid(`${at}.key`, key, fault)),
      );
    pushAll(errors, checkExpression(`${at}.valueExpression`, source, program));
  });
  pushAll(errors, validateConditions(spec, compiled));
  return errors;
}

/** As `validatePolicySpec`, for MutatingAdmissionPolicies. */
function validateMutatingSpec(spec: MutatingAdmissionPolicySpec): FieldError[] {
  const compiled = compileMutations(spec);
  const errors = validateCommon(spec, compiled);
  const { reinvocationPolicy, mutations } = spec;
  if (reinvocationPolicy === undefined) errors.push(required('spec.reinvocationPolicy'));
  else if (!reinvocationPolicies.includes(reinvocationPolicy)) {
    errors.push(notSupported('spec.reinvocationPolicy', reinvocationPolicy, reinvocationPolicies));
  }
  if ((mutations ?? []).length === 0) {
    errors.push(required('spec.mutations', 'mutations must contain at least one item'));
  }
  (mutations ?? []).forEach((mutation, i) => {
    pushAll(errors, validateMutation(mutation, compiled.mutations[i], `spec.mutations[${i}]`));
  });
  pushAll(errors, validateConditions(spec, compiled));
  return errors;
}

function validateMutation(
  { patchType, applyConfiguration, jsonPatch }: Mutation,
  program: object | string | undefined,
  at: string,
): FieldError[] {
  if (patchType === '') return [required(`${at}.patchType`)];
  if (!patchTypes.includes(patchType)) return [notSupported(`${at}.patchType`, patchType, patchTypes)];
  const members = { applyConfiguration, jsonPatch };
  const wanted = patchType === 'JSONPatch' ? 'jsonPatch' : 'applyConfiguration';
  const other = wanted === 'jsonPatch' ? 'applyConfiguration' : 'jsonPatch';
  const errors: FieldError[] = [];
  if (members[other] !== undefined) {
    const detail = `${other} must not be specified when patchType is ${patchType}`;
    errors.push(forbiddenField(`${at}.${other}`, detail));
  }
  const given = members[wanted];
  if (given === undefined) {
    return [...errors, required(`${at}.${wanted}`, `must be specified when patchType is ${patchType}`)];
  }
  return [...errors, ...checkExpression(`${at}.${wanted}.expression`, given.expression ?? '', program)];
}

const rules: KindRules<KubeObject> = {
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  metadataRules: 'machinery',
  allowUnconditionalUpdate: false,
  generationChanges: isSpecChanged,
};

function setMatchDefaults(match: MatchResources | undefined): void {
  if (match === undefined) return;
  match.matchPolicy ??= 'Equivalent';
  match.namespaceSelector ??= {};
  match.objectSelector ??= {};
  for (const rule of [...(match.resourceRules ?? []), ...(match.excludeResourceRules ?? [])])
    rule.scope ??= '*';
}

function setPolicyDefaults({ spec }: { spec?: CommonPolicySpec }): void {
  if (spec === undefined) return;
  spec.failurePolicy ??= 'Fail';
  setMatchDefaults(spec.matchConstraints);
}

/** ValidatingAdmissionPolicies. */
export const validatingPolicyStrategy: Strategy<ValidatingAdmissionPolicy> = {
  ...genericStrategy<ValidatingAdmissionPolicy>({
    ...rules,
    hasStatus: true,
    statusResets: [['metadata']],
    prepareStatus: resetMetaForStatus,
    repeatsCreate: 'instead',
    setDefaults: setPolicyDefaults,
    validateCreate: ({ spec }) => validatePolicySpec(spec),
  }),
};

/** MutatingAdmissionPolicies. */
export const mutatingPolicyStrategy: Strategy<MutatingAdmissionPolicy> = {
  ...genericStrategy<MutatingAdmissionPolicy>({
    ...rules,
    repeatsCreate: 'instead',
    setDefaults: setPolicyDefaults,
    validateCreate: ({ spec }) => validateMutatingSpec(spec),
  }),
};

const actions = ['Audit', 'Deny', 'Warn'];

/** `validationActions` of a ValidatingAdmissionPolicy's binding. */
function validateActions({ spec }: PolicyBinding): FieldError[] {
  const found = spec.validationActions ?? [];
  if (found.length === 0) return [required('spec.validationActions')];
  return found.flatMap((action, i) =>
    actions.includes(action) ? [] : [notSupported(`spec.validationActions[${i}]`, action, actions)],
  );
}

function validateReference({ spec }: PolicyBinding): FieldError[] {
  return (spec.policyName ?? '') === '' ? [required('spec.policyName')] : [];
}

const bindingRules: KindRules<PolicyBinding> = {
  ...rules,
  generationChanges: isSpecChanged,
  repeatsCreate: 'instead',
  setDefaults: ({ spec }) => setMatchDefaults(spec.matchResources),
};

/** Bindings of ValidatingAdmissionPolicies. */
export const validatingBindingStrategy = genericStrategy<PolicyBinding>({
  ...bindingRules,
  validateCreate: (binding) => [...validateReference(binding), ...validateActions(binding)],
});

/** Bindings of MutatingAdmissionPolicies. */
export const mutatingBindingStrategy = genericStrategy<PolicyBinding>({
  ...bindingRules,
  validateCreate: validateReference,
});
