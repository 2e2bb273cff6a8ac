import { defineConfig } from "vite";

// Studio's page, built into the same folder as the report's.
export default defineConfig({
  publicDir: false,
  build: {
    lib: { entry: "src/studio/main.ts", formats: ["iife"], name: "ProposStudio", fileName: () => "studio.js", cssFileName: "studio" },
    target: "es2022",
    emptyOutDir: false,
    reportCompressedSize: false,
  },
});
