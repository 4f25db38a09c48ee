import type { TableConverter } from './table.ts';

/** `additionalPrinterColumns` of a CustomResourceDefinition version. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: string;
  readonly format?: string;
  readonly description?: string;
  readonly priority?: number;
  readonly jsonPath: string;
}

/** The table of a custom resource; no columns means Name and Age. */
export function customTableConverter(_columns: readonly PrinterColumn[]): TableConverter {
  throw new Error('not built yet');
}
