import type {
  MutatingAdmissionPolicySpec,
  Mutation,
  ParamRef,
  ValidatingAdmissionPolicySpec,
  MatchResources,
  MutatingAdmissionPolicy,
  ValidatingAdmissionPolicy,
} from '../../../objects/types/admissionregistration.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import {
  declarative,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../../validation/field-errors.ts';
import { isQualifiedName, nameIsDNSSubdomain, nameIsPathSegment } from '../../../objects/names.ts';
import { validateLabelSelector } from '../../validation/label-selector.ts';
import { validateMatchConditions } from '../expressions.ts';
import { refusingStaticNames } from '../static-names.ts';
import { validateConditions as validateConditionList } from '../../validation/conditions.ts';
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
export const validatingPolicyStrategy: Strategy<ValidatingAdmissionPolicy> = refusingStaticNames(
  genericStrategy<ValidatingAdmissionPolicy>({
    ...rules,
    hasStatus: true,
    statusResets: [['metadata']],
    prepareStatus: resetMetaForStatus,
    repeatsCreate: 'instead',
    setDefaults: setPolicyDefaults,
    validateCreate: ({ spec }) => validatePolicySpec(spec),
    validateStatus: ({ status }) => validateConditionList(status.conditions ?? [], 'status.conditions'),
  }),
);

/** MutatingAdmissionPolicies. */
export const mutatingPolicyStrategy: Strategy<MutatingAdmissionPolicy> = refusingStaticNames(
  genericStrategy<MutatingAdmissionPolicy>({
    ...rules,
    repeatsCreate: 'instead',
    setDefaults: setPolicyDefaults,
    validateCreate: ({ spec }) => validateMutatingSpec(spec),
  }),
);

const actions = ['Audit', 'Deny', 'Warn'];

/** `validationActions` of a ValidatingAdmissionPolicy's binding. */
function validateActions({ spec }: PolicyBinding): FieldError[] {
  const found = spec.validationActions ?? [];
  if (found.length === 0) return [declarative(required('spec.validationActions'))];
  return found.flatMap((action, i) =>
    actions.includes(action) ? [] : [notSupported(`spec.validationActions[${i}]`, action, actions)],
  );
}

function validateReference({ spec }: PolicyBinding, as = (error: FieldError) => error): FieldError[] {
  const errors = (spec.policyName ?? '') === '' ? [as(required('spec.policyName'))] : [];
  return [...errors, ...validateParamRef(spec.paramRef)];
}

const paramActions = ['Deny', 'Allow'];

function validateParamRef(ref: ParamRef | undefined): FieldError[] {
  if (ref === undefined) return [];
  const path = 'spec.paramRef';
  const { name = '', selector, parameterNotFoundAction: action = '' } = ref;
  const errors =
    name === ''
      ? []
      : nameIsPathSegment(name, false).map((message) => invalid(`${path}.name`, name, message));
  const exclusive = 'name and selector are mutually exclusive';
  if (name !== '' && selector !== undefined) errors.push(forbiddenField(`${path}.name`, exclusive));
  pushAll(errors, validateLabelSelector(selector, `${path}.selector`));
  if (name !== '' && selector !== undefined) errors.push(forbiddenField(`${path}.selector`, exclusive));
  if (name === '' && selector === undefined) {
    errors.push(required(path, 'one of name or selector must be specified'));
  }
  if (action === '') errors.push(required(`${path}.parameterNotFoundAction`));
  else if (!paramActions.includes(action)) {
    errors.push(notSupported(`${path}.parameterNotFoundAction`, action, paramActions));
  }
  return errors;
}

const bindingRules: KindRules<PolicyBinding> = {
  ...rules,
  generationChanges: isSpecChanged,
  repeatsCreate: 'instead',
  setDefaults: ({ spec }) => setMatchDefaults(spec.matchResources),
};

/** Bindings of ValidatingAdmissionPolicies. */
export const validatingBindingStrategy = refusingStaticNames(
  genericStrategy<PolicyBinding>({
    ...bindingRules,
    validateCreate: (binding) => [...validateReference(binding, declarative), ...validateActions(binding)],
  }),
);

/** Bindings of MutatingAdmissionPolicies. */
export const mutatingBindingStrategy = refusingStaticNames(
  genericStrategy<PolicyBinding>({
    ...bindingRules,
    validateCreate: (binding) => validateReference(binding),
  }),
);
