import { nameIsDNSSubdomain } from '../../objects/names.ts';
import type { DeviceTaintRule } from '../../objects/types/resource.generated.ts';
import { genericStrategy, isSpecChanged, resetMetaForStatus } from '../generic/generic.ts';
import { validateConditions } from '../validation/conditions.ts';
import { type FieldError, tooMany } from '../validation/field-errors.ts';
import { validateDriver, validateLabel, validatePool, validateTaint } from './checks.ts';

const maxConditions = 8;

/** The rules of DeviceTaintRules (`apis/resource/validation` ValidateDeviceTaintRule). */
export const deviceTaintRuleStrategy = genericStrategy<DeviceTaintRule>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  allowUnconditionalUpdate: false,
  hasStatus: true,
  statusResets: [['metadata']],
  prepareStatus: resetMetaForStatus,
  generationChanges: isSpecChanged,
  setDefaults(rule: Partial<Pick<DeviceTaintRule, 'spec' | 'status'>>) {
    rule.spec ??= { taint: { key: '', effect: '' } };
    rule.status ??= {};
  },
  prepareForCreate({ spec }, { now }) {
    spec.taint.timeAdded ??= now;
  },
  prepareForUpdate({ spec }, old, { now }) {
    const { taint } = spec;
    taint.timeAdded ??= now;
    // The time of another effect is another one.
    if (taint.effect !== old.spec.taint.effect && taint.timeAdded === old.spec.taint.timeAdded) {
      taint.timeAdded = now;
    }
  },
  validateCreate: (rule) => validateSpec(rule, undefined),
  validateUpdate: validateSpec,
  validateStatus({ status }) {
    const { conditions = [] } = status;
    const path = 'status.conditions';
    return [
      ...validateConditions(conditions, path),
      ...(conditions.length > maxConditions ? [tooMany(path, conditions.length, maxConditions)] : []),
    ];
  },
});

function validateSpec({ spec }: DeviceTaintRule, old: DeviceTaintRule | undefined): FieldError[] {
  const { driver, pool, device } = spec.deviceSelector ?? {};
  const path = 'spec.deviceSelector';
  return [
    ...(driver === undefined ? [] : validateDriver(driver, `${path}.driver`)),
    ...(pool === undefined ? [] : validatePool(pool, `${path}.pool`)),
    ...(device === undefined ? [] : validateLabel(device, `${path}.device`)),
    ...validateTaint(spec.taint, old?.spec.taint, 'spec.taint'),
  ];
}
