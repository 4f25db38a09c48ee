import type { ValidatingAdmissionPolicy } from '../../../objects/types/admissionregistration.generated.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { forbidden } from '../../../objects/status-errors.ts';
import { StatusError } from '../../../objects/status.ts';
import {
  judgePolicy,
  type PolicyRefusal,
} from '../../../registry/admissionregistration/admissionpolicy/judge.ts';

import type { Authorizer } from '../../authorization/authorizer.ts';
import type { AdmissionAttributes, AdmissionPlugin, AdmissionReply } from '../../rest/admission.ts';
import type { ServerCore } from '../../rest/server-core.ts';
import { runInSlices, TimeSlice } from '../../time-slice.ts';
import { versionedFor } from '../webhooks/review.ts';
import { invocationsOf, mayMatch, policyInput, policyKind } from './policy-input.ts';

const policies = policyKind<ValidatingAdmissionPolicy>(
  'ValidatingAdmissionPolicy',
  'validatingadmissionpolicies',
);

/** HTTP codes of the reasons that a validation may name. */
const codes: ReadonlyMap<string, number> = new Map([
  ['Forbidden', 403],
  ['Unauthorized', 401],
  ['RequestEntityTooLarge', 413],
  ['Invalid', 422],
]);

/**
 * The plugin ValidatingAdmissionPolicy: evaluates the bound policies for writes; the `validationActions` of a binding
 * say what a refusal does (apiserver `admission/plugin/policy/validating`).
 */
export class ValidatingPolicies implements AdmissionPlugin {
  readonly #core: ServerCore;
  readonly #authorizer: Authorizer;

  constructor(core: ServerCore, authorizer: Authorizer) {
    this.#core = core;
    this.#authorizer = authorizer;
  }

  handles(attributes: AdmissionAttributes): boolean {
    return mayMatch(this.#core, policies, attributes);
  }

  /** @throws {StatusError} for the first refusal of a binding with the action Deny. */
  async validate(attributes: AdmissionAttributes, reply: AdmissionReply): Promise<void> {
    const { invocations, misconfigured } = await invocationsOf(this.#core, policies, attributes);
    const denied: StatusError[] = [];
    const deny = (policy: KubeObject, binding: KubeObject, refusal: PolicyRefusal) =>
      denied.push(refuse(attributes, policy, binding, refusal));
    for (const { policy, binding, why } of misconfigured) {
      if (policy.spec.failurePolicy === 'Ignore') continue;
      deny(policy, binding, { message: `failed to configure binding: ${why}`, reason: '' });
    }
    const slice = new TimeSlice();
    for (const invocation of invocations) {
      if (slice.isOver) await slice.giveWay();
      const { policy, binding } = invocation;
      const actions = binding.spec.validationActions ?? [];
      const versioned = await versionedFor(invocation.resource, attributes);
      const input = policyInput(this.#core, invocation, versioned, this.#authorizer);
      for (const refusal of await runInSlices(judgePolicy(policy.spec, input))) {
        if (refusal.always === true || actions.includes('Deny')) deny(policy, binding, refusal);
        if (refusal.always !== true && actions.includes('Warn')) {
          reply.warn(`Validation failed for ${nameOf(policy, binding)}: ${refusal.message}`);
        }
      }
    }
    const [first] = denied;
    if (first !== undefined) throw first;
  }
}

function nameOf(policy: KubeObject, binding: KubeObject): string {
  return `ValidatingAdmissionPolicy '${policy.metadata.name ?? ''}' with binding '${binding.metadata.name ?? ''}'`;
}

function refuse(
  { resource, name }: AdmissionAttributes,
  policy: KubeObject,
  binding: KubeObject,
  { message, reason }: PolicyRefusal,
): StatusError {
  const text = `${nameOf(policy, binding)} denied request: ${message}`;
  const { message: whole, details = {} } = forbidden(resource.groupResource, name, text, [{ message: text }]);
  const named = reason === '' ? 'Invalid' : reason;
  return new StatusError(codes.get(named) ?? 422, named, whole, { details });
}
