import type { KubeObject } from '../../../objects/meta.ts';

/** Core/v1 LimitRange. */
export interface LimitRange extends KubeObject {
  spec: { limits?: LimitRangeItem[] | null };
}

/** The limits of one type of object. */
export interface LimitRangeItem {
  type?: string;
  max?: Quantities;
  min?: Quantities;
  default?: Quantities;
  defaultRequest?: Quantities;
  maxLimitRequestRatio?: Quantities;
}

/** Amounts by the name of a resource. */
export type Quantities = Record<string, string>;
