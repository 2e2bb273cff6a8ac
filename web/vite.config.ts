import { defineConfig } from "vite";

// One classic script and one style sheet: a page opened from a file may load no module.
export default defineConfig({
  build: {
    lib: { entry: "src/main.ts", formats: ["iife"], name: "ProposReport", fileName: () => "app.js", cssFileName: "app" },
    target: "es2022",
    emptyOutDir: true,
    reportCompressedSize: false,
  },
  define: { "process.env.NODE_ENV": '"production"' },
});
